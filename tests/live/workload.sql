-- What happens. A statement ends with a semicolon at the end of a line. "-- @a" runs what follows on connection a,
-- "-- @main" on the usual one; "-- @sync" waits until every recorder has received everything so far;
-- "-- @record" is where the recorders connect: what stands before it is decoded after the fact.

-- PostgreSQL 18 looks whether a transaction has already aborted when it runs out of memory for it (16 does not).
INSERT INTO item VALUES (1, 'before the recorders', 1, NULL);
BEGIN;
INSERT INTO item VALUES (2, 'lost', 2, NULL);
SAVEPOINT s;
INSERT INTO item VALUES (3, 'lost in a savepoint', 3, NULL);
SELECT fill();
ROLLBACK TO s;
INSERT INTO item VALUES (4, 'lost later', 4, NULL);
SELECT fill();
ROLLBACK;
BEGIN;
INSERT INTO item VALUES (5, 'kept', 5, NULL);
SAVEPOINT s;
INSERT INTO item VALUES (6, 'lost in a savepoint', 6, NULL);
SELECT fill();
ROLLBACK TO s;
COMMIT;
-- There 18 takes the savepoint for streamed, and tells even a client without streaming that it aborted.
BEGIN;
SAVEPOINT s;
INSERT INTO item VALUES (7, 'lost', 7, NULL);
RELEASE s;
SELECT fill();
ROLLBACK;

-- @record
-- Rows: NULL, empty strings, key changes, each replica identity.
INSERT INTO item VALUES (10, '', NULL, ''), (11, NULL, -0.01, NULL), (12, E'tab\tline\nback\\slash "q" \u00fc \U0001f418', 12.5, NULL);
UPDATE item SET name = 'changed' WHERE id = 11;
UPDATE item SET id = 13 WHERE id = 11;
DELETE FROM item WHERE id = 13;
INSERT INTO by_index VALUES (1, 'A', 'one', NULL), (2, repeat('k', 2100), 'a long key', NULL);
UPDATE by_index SET note = 'uno' WHERE id = 1;
UPDATE by_index SET code = 'B' WHERE id = 1;
UPDATE by_index SET note = 'the key is unchanged and comes all the same' WHERE id = 2;
DELETE FROM by_index;
INSERT INTO full_row VALUES (1, 'one', NULL), (1, 'one', NULL);
UPDATE full_row SET name = NULL WHERE id = 1;
DELETE FROM full_row;
INSERT INTO log_only VALUES (1, 'insert only'), (2, NULL);
UPDATE log_only SET line = 'not published' WHERE id = 1;
INSERT INTO no_key VALUES (1);
INSERT INTO no_columns DEFAULT VALUES;

-- TOAST: unchanged, changed, flattened in the old row of a full identity.
INSERT INTO item VALUES (20, 'toast', 1, repeat('t', 2100));
UPDATE item SET name = 'big is unchanged' WHERE id = 20;
UPDATE item SET id = 21 WHERE id = 20;
UPDATE item SET big = repeat('u', 2101) WHERE id = 21;
INSERT INTO full_row VALUES (3, 'toast', repeat('f', 2100));
UPDATE full_row SET name = 'big is in the old row, unchanged in the new one' WHERE id = 3;

-- Values.
INSERT INTO typed (id) VALUES (1);
INSERT INTO typed VALUES (2, true, -32768, 9223372036854775807, 'NaN', 'Infinity', 'NaN', 'NaN', '-12.34', 'varchar', 'ch',
    'c', 'a name', (SELECT decode(string_agg(lpad(to_hex(i), 2, '0'), '' ORDER BY i), 'hex') FROM generate_series(0, 255) i),
    'infinity', 'infinity', '-infinity', '24:00', '12:34:56.789+05:30', '-1 year 2 mons -3 days 04:05:06.789',
    '12345678-1234-5678-1234-567812345678', '{"a" : [1, null]}', '{"ü": "\u00fc"}', 'happy', 'a@b.c', (1.5, NULL, 'la"bel, (x)'),
    '{1,NULL,-3}', ARRAY['', 'NULL', NULL, 'a,"b"\', 'ü'], '{1.10,NaN}', '{sad,ok}', ARRAY[(0, 1, 'x'), NULL]::point_3d[],
    '{x@y}', '[1,5)', '{[1,2),[5,)}', '(,2020-01-01)', '::1/64', '08:00:2b:01:02:03', B'10101', B'', '(1,-2)', 'a fat cat',
    4294967295, '16/B374D848', 'postgres=r/postgres');
INSERT INTO typed (id, i8, f4, f8, num, small, day, ts, tstz, iv, ints, bytes) VALUES
    (3, -9223372036854775808, '-0', 5e-324, 'Infinity', 0.001, '0044-03-15 BC', '0001-01-01 00:00:00 BC', '4713-01-01 00:00+00 BC',
        '178000000 years', '[-1:1]={1,2,3}', ''),
    (4, 0, 1e-45, 1.7976931348623157e308, '-Infinity', -999.999, '5874897-12-31', '294276-12-31 23:59:59.999999', '2000-01-01 00:00+00',
        '1 microsecond', '{{1,2},{3,4}}', '\x00'),
    (5, 1, 3.4028235e38, -0.0, 1e-100, NULL, '-infinity', '1999-12-31 23:59:59.999999', 'infinity', '0', '{}', NULL),
    (6, NULL, NULL, 0.1, 12345678901234567890123456789.000100, NULL, '2000-01-01', NULL, NULL, NULL, NULL, NULL);
-- @18
INSERT INTO typed (id, iv) VALUES (7, 'infinity'), (8, '-infinity');
INSERT INTO "Odd schema.ü"."Straße ""x"". 表" VALUES (1, 'c.d', E'it\'s', 'glücklich', 'it''s ok');
UPDATE "Odd schema.ü"."Straße ""x"". 表" SET "a b" = 2, "it's" = '';

-- Partitions: through the root also moves between partitions; as leaves with their own names.
INSERT INTO rooted VALUES ('2019-05-01', 1, 'old'), ('2024-05-01', 2, 'new');
UPDATE rooted SET note = 'newer' WHERE v = 2;
UPDATE rooted SET day = '2023-01-01' WHERE v = 1;
DELETE FROM rooted WHERE v = 2;
TRUNCATE rooted;
INSERT INTO leafed VALUES (1, 'one'), (2, 'two');
UPDATE leafed SET v = 'zwei' WHERE k = 2;
DELETE FROM leafed WHERE k = 2;
UPDATE leafed SET k = 2 WHERE k = 1;

-- Column list; row filter: UPDATE turned INSERT (big is unchanged there), UPDATE turned DELETE, and nothing at all.
INSERT INTO listed VALUES (1, 'shown', 'hidden');
UPDATE listed SET hidden = 'changed' WHERE id = 1;
UPDATE listed SET id = 2 WHERE id = 1;
INSERT INTO filtered VALUES (1, true, NULL), (2, false, repeat('h', 2100));
UPDATE filtered SET visible = true WHERE id = 2;
UPDATE filtered SET visible = false WHERE id = 1;
DELETE FROM filtered WHERE id = 1;
INSERT INTO generated VALUES (1, 21);
UPDATE generated SET a = 22;

-- Truncate: several tables, each option.
INSERT INTO parent (name) VALUES ('p');
INSERT INTO child (parent) VALUES (1);
TRUNCATE parent, child, altered;
TRUNCATE parent CASCADE;
TRUNCATE child RESTART IDENTITY;
TRUNCATE parent, full_row RESTART IDENTITY CASCADE;

-- Logical messages.
SELECT pg_logical_emit_message(true, 'alone', 'makes a transaction of its own');
SELECT pg_logical_emit_message(false, '', '');
BEGIN;
INSERT INTO item VALUES (30, 'with messages', 1, NULL);
SELECT pg_logical_emit_message(true, 'prefix ü', '\x00ff80'::bytea);
SELECT pg_logical_emit_message(false, 'not transactional', 'comes first');
SAVEPOINT s;
SELECT pg_logical_emit_message(true, 'rolled back', 'never seen');
SELECT pg_logical_emit_message(false, 'rolled back, not transactional', 'seen');
ROLLBACK TO s;
COMMIT;

-- Origins: named, with its own position and time; streamed; prepared.
SELECT pg_replication_origin_session_setup('origin ü 1');
BEGIN;
SELECT pg_replication_origin_xact_setup('16/B374D848', '2001-02-03 04:05:06.789+00');
INSERT INTO item VALUES (40, 'from an origin', 1, NULL);
COMMIT;
BEGIN;
INSERT INTO item VALUES (41, 'streamed from an origin', 1, NULL);
SELECT fill();
-- @sync
COMMIT;
BEGIN;
SELECT pg_replication_origin_xact_setup('16/B374D849', '2001-02-03 04:05:07+00');
INSERT INTO item VALUES (42, 'prepared from an origin', 1, NULL);
PREPARE TRANSACTION 'origin';
COMMIT PREPARED 'origin';
SELECT pg_replication_origin_session_reset();

-- Altered in the middle of a transaction: columns come and go.
BEGIN;
INSERT INTO altered VALUES (1, 'one column');
ALTER TABLE altered ADD COLUMN b mood DEFAULT 'ok', ADD COLUMN c int;
INSERT INTO altered VALUES (2, 'more', 'sad', 3);
ALTER TABLE altered DROP COLUMN a;
INSERT INTO altered VALUES (3, 'happy', 4);
COMMIT;

-- Large: real rows, savepoints kept and rolled back, nested.
BEGIN;
INSERT INTO item SELECT i, 'large ' || i, i FROM generate_series(1000, 1059) i;
SAVEPOINT kept;
INSERT INTO item SELECT i, 'large ' || i, i FROM generate_series(1060, 1119) i;
SELECT fill();
SAVEPOINT lost;
INSERT INTO full_row VALUES (50, 'lost', NULL);
SAVEPOINT deeper;
UPDATE item SET name = 'lost' WHERE id IN (1000, 1061);
SELECT fill();
-- @sync
SELECT pg_logical_emit_message(true, 'streamed', 'in a lost savepoint');
ROLLBACK TO lost;
SAVEPOINT again;
INSERT INTO full_row VALUES (51, 'kept', NULL);
DELETE FROM item WHERE id < 1004 AND id >= 1000;
TRUNCATE parent, child;
INSERT INTO typed (id, feeling, mail) VALUES (60, 'sad', 'a@b');
SELECT fill();
-- @sync
COMMIT;

-- Streamed, altered the table, and rolled back: the new columns never were.
BEGIN;
INSERT INTO altered VALUES (10, 'ok', 1);
SAVEPOINT s;
ALTER TABLE altered ADD COLUMN never text DEFAULT 'x';
INSERT INTO altered VALUES (11, 'ok', 1, 'never');
SELECT fill();
-- @sync
SELECT fill();
-- @sync
ROLLBACK;
INSERT INTO altered VALUES (12, 'ok', 1);

-- Streamed, altered in a savepoint that was rolled back, the rest committed.
BEGIN;
SAVEPOINT s;
ALTER TABLE altered ADD COLUMN never int;
INSERT INTO altered VALUES (13, 'ok', 1, 2);
SELECT fill();
-- @sync
ROLLBACK TO s;
INSERT INTO altered VALUES (14, 'sad', 1);
SELECT fill();
-- @sync
COMMIT;

-- Streams interleaved, with a small transaction and a message between them; one commits, one rolls back.
-- @a
BEGIN;
INSERT INTO item VALUES (100, 'stream a', 1, NULL);
SELECT fill();
-- @sync
-- @b
BEGIN;
INSERT INTO item VALUES (200, 'stream b', 1, NULL);
SELECT fill();
-- @sync
-- @main
INSERT INTO item VALUES (300, 'between', 1, NULL);
SELECT pg_logical_emit_message(false, 'between', 'streams');
-- @c
BEGIN;
INSERT INTO full_row VALUES (400, 'stream c', NULL);
SELECT fill();
-- @a
UPDATE item SET name = 'stream a again' WHERE id = 100;
SELECT pg_logical_emit_message(true, 'stream a', 'transactional');
SELECT fill();
-- @sync
-- @b
UPDATE item SET id = 201 WHERE id = 200;
SELECT fill();
-- @sync
ROLLBACK;
-- @c
DELETE FROM full_row WHERE id = 400;
SELECT fill();
-- @sync
PREPARE TRANSACTION 'streamed, then committed';
-- @a
COMMIT;
-- @main
COMMIT PREPARED 'streamed, then committed';

-- Two-phase: committed and rolled back, others between; streamed and rolled back.
BEGIN;
INSERT INTO item VALUES (500, 'prepared', 1, NULL);
PREPARE TRANSACTION 'gid ü ''quoted''';
BEGIN;
SAVEPOINT s;
INSERT INTO item VALUES (501, 'never', 1, NULL);
PREPARE TRANSACTION 'rolled back';
INSERT INTO item VALUES (502, 'between', 1, NULL);
COMMIT PREPARED 'gid ü ''quoted''';
-- @sync
ROLLBACK PREPARED 'rolled back';
BEGIN;
INSERT INTO item VALUES (503, 'streamed and prepared', 1, NULL);
SELECT fill();
-- @sync
PREPARE TRANSACTION 'streamed, then rolled back';
-- @sync
ROLLBACK PREPARED 'streamed, then rolled back';
INSERT INTO item VALUES (999, 'the last row', 1, NULL);
