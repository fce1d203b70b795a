// Command crowd opens many sessions on scripted agents inside this one process, holds
// them, closes them, and prints one line of JSON: how long that took, what one session
// and its agent take together, and what remains afterwards. It fails if the closed
// sessions keep more than 2 MiB and a tenth of the heap before.
//
//	go run ./bench/crowd -sessions 10000
//	go run ./bench/crowd -sessions 10000 -passive -most 18
//	go run ./bench/crowd -sessions 50 -callbacks 1200 -answer 8192
package main

import (
	"context"
	"flag"
	"log"
	"os"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/bench/internal/drive"
	"github.com/agent-troupe/troupe/bench/internal/fast"
	"github.com/agent-troupe/troupe/bench/internal/measure"
)

func main() {
	log.SetFlags(0)
	many := 10000
	if os.Getenv("TROUPE_SMOKE") != "" {
		many = 50
	}
	sessions := flag.Int("sessions", many, "sessions at once")
	turns := flag.Bool("turns", false, "have a turn with each session before it is held")
	passive := flag.Bool("passive", false, "let each session give up its agent before it is held")
	most := flag.Float64("most", 0, "fail if a session that is held has more KiB of heap; 0: no limit")
	callbacks := flag.Int("callbacks", 0, "hooks that each session answers before it is held")
	answer := flag.Int("answer", 0, "bytes of text in the answer of each hook")
	heap := flag.String("memprofile", "", "write a heap profile to this file while all sessions are open")
	left := flag.String("leftprofile", "", "write a heap profile to this file when all sessions are closed")
	flag.Parse()
	if flag.NArg() > 0 || *sessions < 1 {
		flag.Usage()
		os.Exit(2)
	}
	job := drive.Job{
		Backend: scripted.New(), Sessions: *sessions,
		Held: measure.HeapProfile(*heap), Left: measure.HeapProfile(*left),
	}
	if *callbacks > 0 {
		job.Backend, job.Mode, job.N, job.Answer = fast.Program{}, measure.Hook, *callbacks, *answer
	}
	figures, err := drive.Many(context.Background(), job, *turns, *passive)
	if err != nil {
		log.Fatal(err)
	}
	if err := measure.Print(figures); err != nil {
		log.Fatal(err)
	}
	if err := figures.Kept(); err != nil {
		log.Fatal(err)
	}
	if *most > 0 && figures.HeapEach > *most {
		log.Fatalf("a session has %.2f KiB of heap, more than %v", figures.HeapEach, *most)
	}
}
