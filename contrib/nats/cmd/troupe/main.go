// Command troupe is the command of the main module, with NATS: it shares jobs with other machines.
//
//	troupe worker --listen HOST:PORT     run tasks, and the servers
//	troupe worker --nats URL             run tasks of the jobs that the servers have
//	troupe batch TASKS --nats URL        give the servers a job, and take its results
//	troupe batch --attach JOB --nats URL take the results of a job that was given to them
//	troupe jobs [rm JOB] --nats URL      list or remove jobs
//
// troupe help lists what it has besides.
package main

import (
	"context"
	"os"

	"github.com/agent-troupe/troupe/internal/command"
)

func main() { os.Exit(command.Program{Machines: machines{}}.Main(context.Background(), os.Args[1:])) }
