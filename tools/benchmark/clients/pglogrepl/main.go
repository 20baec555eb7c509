// Reads from a publisher with pglogrepl. See tools/benchmark/harness.py for its arguments.
package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

func main() {
	host, port, user, database := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	slot, publication, version := os.Args[5], os.Args[6], os.Args[7]
	count, err := strconv.Atoi(os.Args[8])
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	os.Setenv("PGHOST", host)
	os.Setenv("PGPORT", port)
	os.Setenv("PGUSER", user)
	os.Setenv("PGDATABASE", database)
	connection, err := pgconn.Connect(ctx, "replication=database sslmode=prefer")
	check(err)
	defer connection.Close(ctx)
	system, err := pglogrepl.IdentifySystem(ctx, connection)
	check(err)
	fmt.Println(system.Timeline, system.DBName)
	options := []string{"proto_version '" + version + "'", "publication_names '" + publication + "'"}
	if version != "1" {
		options = append(options, "streaming 'on'")
	}
	check(pglogrepl.StartReplication(ctx, connection, slot, 0, pglogrepl.StartReplicationOptions{PluginArgs: options}))
	inStream := false
	for count > 0 {
		received, err := connection.ReceiveMessage(ctx)
		check(err)
		data, ok := received.(*pgproto3.CopyData)
		if !ok {
			check(fmt.Errorf("unexpected %T: %+v", received, received))
		}
		if data.Data[0] == pglogrepl.PrimaryKeepaliveMessageByteID {
			keepalive, err := pglogrepl.ParsePrimaryKeepaliveMessage(data.Data[1:])
			check(err)
			if keepalive.ReplyRequested {
				status := pglogrepl.StandbyStatusUpdate{WALWritePosition: 0}
				check(pglogrepl.SendStandbyStatusUpdate(ctx, connection, status))
			}
			continue
		}
		wal, err := pglogrepl.ParseXLogData(data.Data[1:])
		check(err)
		fmt.Println(wal.WALStart, hex.EncodeToString(wal.WALData), describe(wal.WALData, version, &inStream))
		count--
	}
	_, err = pglogrepl.SendStandbyCopyDone(ctx, connection)
	check(err)
}

func describe(data []byte, version string, inStream *bool) string {
	if version == "1" {
		message, err := pglogrepl.Parse(data)
		check(err)
		return message.Type().String()
	}
	message, err := pglogrepl.ParseV2(data, *inStream)
	check(err)
	switch message.Type() {
	case pglogrepl.MessageTypeStreamStart:
		*inStream = true
	case pglogrepl.MessageTypeStreamStop:
		*inStream = false
	}
	return message.Type().String()
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
