// Command chat is a conversation in a terminal.
//
//	go run ./examples/chat                 # a demonstration, no account
//	go run ./examples/chat -agent claude   # Claude Code; or qoder; -model: the embedded agent
//
// Look for: the answer streams; a tool that needs permission waits for your y. Ctrl-C
// interrupts the turn and keeps the conversation. Ctrl-C at the prompt, /exit and the
// end of the input end the chat. "/model NAME" changes the model.
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

	"github.com/agent-troupe/troupe/examples/internal/choice"
)

func main() {
	agent := choice.Flags()
	flag.Parse()
	var in io.Reader = os.Stdin
	if os.Getenv("TROUPE_SMOKE") != "" {
		in = strings.NewReader("What is in this directory?\ny\nRun the tests.\ny\n")
	}
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	if err := run(context.Background(), agent, in, os.Stdout, interrupts); err != nil {
		log.Fatal(err)
	}
}

// linesOf reads in on its own goroutine, so that the caller can stop waiting for a
// line. The channel is closed at the end of in.
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
