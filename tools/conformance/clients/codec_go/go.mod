module codec_conformance

go 1.25.0

require (
	github.com/jackc/pgx/v5 v5.9.1
	pgoutput.test/codec v0.0.0
)

replace pgoutput.test/codec => ./codec
