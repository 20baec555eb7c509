-- The workload's tables. Statements end with a semicolon at the end of a line; "-- @18" limits the next one to 18 and later.
-- Every table says which property of the protocol it is for.

-- Decoded but never published: it drives transactions over logical_decoding_work_mem without bytes on the wire.
CREATE TABLE filler (line text);
CREATE FUNCTION fill() RETURNS void LANGUAGE sql AS
$$ INSERT INTO filler SELECT repeat('x', 1000) FROM generate_series(1, 100) $$;

-- Replica identities: default (key), index, full, nothing, and default without a key.
CREATE TABLE item (id int PRIMARY KEY, name text, amount numeric(12, 2), big text);
CREATE TABLE by_index (id int, code text NOT NULL, note text, big text);
CREATE UNIQUE INDEX by_index_code ON by_index (code);
ALTER TABLE by_index REPLICA IDENTITY USING INDEX by_index_code;
CREATE TABLE full_row (id int, name text, big text);
ALTER TABLE full_row REPLICA IDENTITY FULL;
CREATE TABLE log_only (id int, line text);
ALTER TABLE log_only REPLICA IDENTITY NOTHING;
CREATE TABLE no_key (a int);
CREATE TABLE no_columns ();

-- EXTERNAL keeps a long value uncompressed, so that it leaves the row and can be "unchanged".
ALTER TABLE item ALTER big SET STORAGE EXTERNAL;
ALTER TABLE full_row ALTER big SET STORAGE EXTERNAL;
ALTER TABLE by_index ALTER big SET STORAGE EXTERNAL, ALTER code SET STORAGE EXTERNAL;

-- Names that need quoting, for schema, table, columns and types (type messages carry them too).
CREATE SCHEMA "Odd schema.ü";
CREATE TYPE "Odd schema.ü"."mood. ""ü""" AS ENUM ('sad', 'it''s ok', 'glücklich');
CREATE TABLE "Odd schema.ü"."Straße ""x"". 表" (
    "a b" int PRIMARY KEY, "c.d" text, "it's" text, "quo""te" "Odd schema.ü"."mood. ""ü""", "ключ" "Odd schema.ü"."mood. ""ü""");

-- Types: enum, domain, composite, arrays and ranges of them; aclitem has no binary output.
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN email AS varchar(40) CHECK (VALUE LIKE '%@%');
CREATE TYPE point_3d AS (x float8, y float8, label text);
CREATE TABLE typed (
    id int PRIMARY KEY, yes bool, i2 int2, i8 int8, f4 float4, f8 float8, num numeric, small numeric(6, 3), cash money,
    vc varchar(10), ch char(5), one "char", name name, bytes bytea, day date, ts timestamp, tstz timestamptz, tm time,
    tmtz timetz, iv interval, uid uuid, j json, jb jsonb, feeling mood, mail email, place point_3d, ints int[],
    texts text[], nums numeric[], feelings mood[], places point_3d[], mails email[], span int4range,
    spans int4multirange, days daterange, net inet, mac macaddr, bits bit(5), vbits varbit, pt point, words tsvector,
    ref oid, place_in_log pg_lsn, acl aclitem);

-- Partitions: published as their root, and as themselves; one partition has its columns in another order.
CREATE TABLE rooted (day date, v int, note text, PRIMARY KEY (day, v)) PARTITION BY RANGE (day);
CREATE TABLE rooted_old PARTITION OF rooted FOR VALUES FROM (MINVALUE) TO ('2020-01-01');
CREATE TABLE rooted_new (note text, v int NOT NULL, gone int, day date NOT NULL, PRIMARY KEY (day, v));
ALTER TABLE rooted_new DROP COLUMN gone;
ALTER TABLE rooted ATTACH PARTITION rooted_new FOR VALUES FROM ('2020-01-01') TO (MAXVALUE);
CREATE TABLE leafed (k int PRIMARY KEY, v text) PARTITION BY LIST (k);
CREATE TABLE leafed_1 PARTITION OF leafed FOR VALUES IN (1);
CREATE TABLE leafed_2 PARTITION OF leafed FOR VALUES IN (2);

-- A column list, a row filter (with a TOASTed column outside the key), and generated columns.
CREATE TABLE listed (id int PRIMARY KEY, shown text, hidden text);
CREATE TABLE filtered (id int, visible bool, big text, PRIMARY KEY (id, visible));
ALTER TABLE filtered ALTER big SET STORAGE EXTERNAL;
CREATE TABLE generated (id int PRIMARY KEY, a int, twice int GENERATED ALWAYS AS (a * 2) STORED);
-- @18
ALTER TABLE generated ADD COLUMN thrice int GENERATED ALWAYS AS (a * 3) VIRTUAL;

-- Truncated together: a foreign key makes the cascade, serial columns the identities to restart.
CREATE TABLE parent (id serial PRIMARY KEY, name text);
CREATE TABLE child (id serial PRIMARY KEY, parent int REFERENCES parent);

-- Altered in the middle of transactions.
CREATE TABLE altered (id int PRIMARY KEY, a text);

CREATE PUBLICATION pub FOR TABLE item, by_index, full_row, typed, "Odd schema.ü"."Straße ""x"". 表", leafed,
    listed (id, shown), filtered WHERE (visible), parent, child, altered;
CREATE PUBLICATION pub_insert FOR TABLE log_only, no_key, no_columns WITH (publish = 'insert, truncate');
CREATE PUBLICATION pub_root FOR TABLE rooted WITH (publish_via_partition_root = true);
CREATE PUBLICATION pub_generated FOR TABLE generated;
-- @18
ALTER PUBLICATION pub_generated SET (publish_generated_columns = stored);
-- Origins belong to the whole server.
SELECT pg_replication_origin_create('origin ü 1') WHERE NOT EXISTS (SELECT FROM pg_replication_origin);
