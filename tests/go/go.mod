module sinew/tests/go

go 1.20
