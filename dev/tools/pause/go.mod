module asyncjob.dev/tools/pause

go 1.26.0

tool asyncjob.dev/tools/pause
