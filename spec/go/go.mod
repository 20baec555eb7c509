module pgoutput.test/codec

go 1.22
