-- A bank: a table with a key, one told apart by its full rows, and one that is truncated now and then.
CREATE TABLE account (id bigint PRIMARY KEY, owner text, balance bigint, note text);
CREATE TABLE entry (account bigint, amount bigint);
ALTER TABLE entry REPLICA IDENTITY FULL;
CREATE INDEX ON entry (amount);
CREATE TABLE cart (id bigint PRIMARY KEY, items bigint);
CREATE SEQUENCE numbers;
CREATE PUBLICATION bank FOR TABLE account, entry, cart;

-- A number of transactions of some ten messages each: rows, keys that change, subtransactions that are rolled back.
CREATE PROCEDURE work(rounds int) LANGUAGE plpgsql AS $$
DECLARE
    n bigint;
BEGIN
    FOR i IN 1..rounds LOOP
        n := nextval('numbers');
        INSERT INTO account VALUES (n, 'owner ' || n, 0, repeat(md5(n::text), 1 + (n % 3)::int));
        UPDATE account SET balance = balance + n WHERE id = 1 + n / 2;
        INSERT INTO entry SELECT n % 100, n FROM generate_series(1, 1 + (n % 3)::int);
        IF n % 5 = 0 THEN
            DELETE FROM account WHERE id = n - 3;
        END IF;
        IF n % 7 = 0 THEN
            UPDATE account SET id = -id WHERE id = n - 2;
        END IF;
        IF n % 11 = 0 THEN
            UPDATE entry SET account = -1 WHERE amount = n - 10;
            DELETE FROM entry WHERE amount = n - 4;
        END IF;
        IF n % 50 = 0 THEN
            INSERT INTO cart VALUES (n, n);
        END IF;
        IF n % 1000 = 0 THEN
            TRUNCATE cart;
        END IF;
        BEGIN
            INSERT INTO account VALUES (-n * 1000000, 'nobody', 0, '');
            RAISE EXCEPTION 'taken back';
        EXCEPTION WHEN raise_exception THEN
            NULL;
        END;
        COMMIT;
    END LOOP;
END
$$;
