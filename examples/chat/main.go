// Command chat is a conversation in a terminal.
//
//	go run ./examples/chat                 # a scripted agent, no account
//	go run ./examples/chat -agent claude   # Claude Code; or qoder
//
// What to see: the answer streams; a tool that needs permission waits for your
// y; Ctrl-C interrupts the turn and keeps the conversation; at the prompt it
// ends the chat, as do /exit and the end of the input. "/model NAME" changes the
// model on the way.
package main

import (
	"bufio"
	"context"
	"flag"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
)

func main() {
	agent := flag.String("agent", "scripted", "scripted, claude or qoder")
	flag.Parse()
	var in io.Reader = os.Stdin
	if os.Getenv("TROUPE_SMOKE") != "" {
		in = strings.NewReader("Hello\ny\nAnd goodbye\n")
	}
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	if err := run(context.Background(), *agent, in, os.Stdout, interrupts); err != nil {
		log.Fatal(err)
	}
}

// linesOf reads in on a goroutine of its own, so that a wait for a line can be
// given up. The channel is closed at the end of in.
func linesOf(in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(in); s.Scan(); {
			lines <- s.Text()
		}
	}()
	return lines
}
