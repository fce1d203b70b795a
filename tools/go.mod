module github.com/agent-troupe/troupe/tools

go 1.26
