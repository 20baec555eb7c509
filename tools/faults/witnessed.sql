-- The tables that the writers change, and the witness: a row for each change, in the transaction of the change, so
-- that it stays or goes with it. The witness is not published.
CREATE SEQUENCE marks;

CREATE TABLE item (id bigint PRIMARY KEY, mark bigint, name text, amount numeric(12, 2));
CREATE TABLE document (id bigint PRIMARY KEY, mark bigint, note text, body text);
ALTER TABLE document ALTER body SET STORAGE EXTERNAL;
CREATE TABLE ledger (id bigint PRIMARY KEY, mark bigint, amount numeric(12, 2), body text);
ALTER TABLE ledger ALTER body SET STORAGE EXTERNAL;
ALTER TABLE ledger REPLICA IDENTITY FULL;
CREATE TABLE emptied (id bigint PRIMARY KEY, mark bigint);
CREATE TABLE emptied_too (id bigint PRIMARY KEY, mark bigint);
CREATE TABLE evolving (id bigint PRIMARY KEY, mark bigint, first text DEFAULT 'first', second int DEFAULT 2);
-- Who updates a ticket holds its row until the commit: the numbers of one ticket are in the order of the commits.
CREATE TABLE ticket (id bigint PRIMARY KEY, mark bigint);
INSERT INTO ticket SELECT g, 0 FROM generate_series(1, 3) g;

CREATE TABLE witness (
    serial bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    op text NOT NULL,
    relation text NOT NULL,
    old jsonb,
    new jsonb
);

-- A row as texts; long ones by their digest, so that the witness does not double the WAL.
CREATE FUNCTION texts(given jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT jsonb_object_agg(key, CASE WHEN length(value) > 64 THEN 'md5:' || md5(value) ELSE value END)
    FROM jsonb_each_text(given)
$$;

-- Row triggers fire when their statement ends, in the order of the changes, which is that of the WAL.
CREATE FUNCTION observe() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO witness (op, relation, old, new)
    VALUES (lower(TG_OP), TG_TABLE_NAME, texts(to_jsonb(OLD)), texts(to_jsonb(NEW)));
    RETURN NULL;
END
$$;

DO $$
DECLARE watched text;
BEGIN
    FOREACH watched IN ARRAY ARRAY['item', 'document', 'ledger', 'emptied', 'emptied_too', 'evolving', 'ticket'] LOOP
        EXECUTE format('CREATE TRIGGER observe AFTER INSERT OR UPDATE OR DELETE ON %I FOR EACH ROW
                        EXECUTE FUNCTION observe()', watched);
        EXECUTE format('CREATE TRIGGER observe_truncate AFTER TRUNCATE ON %I FOR EACH STATEMENT
                        EXECUTE FUNCTION observe()', watched);
    END LOOP;
END
$$;

CREATE PUBLICATION faults FOR TABLE item, document, ledger, emptied, emptied_too, evolving, ticket;
