module pglogrepl_conformance

go 1.25.0

require github.com/jackc/pglogrepl v0.0.0-20260401131349-e37c41485510
