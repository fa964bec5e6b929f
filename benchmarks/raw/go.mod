module asyncjob.dev/benchmarks/raw

go 1.24.0
