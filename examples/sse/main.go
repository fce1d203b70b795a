// Command sse streams agent sessions to web pages with server-sent events.
//
//	go run ./examples/sse                 # a demonstration, no account
//	go run ./examples/sse -agent claude   # Claude Code; or qoder; -model: the embedded agent
//
// Open the printed address, in several windows if you like, send a prompt, press Stop
// while the answer comes, close a window.
//
// Look for: text as it is written, tool calls, the session's state. Each window has its
// own session and its own agent. When you close the window, its request's context ends,
// and the session is closed. Ctrl-C closes all sessions.
//
// Without a terminal and without -port, or with TROUPE_SMOKE=1, the program
// opens its own page once, prints the events, and ends.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/examples/internal/choice"
)

//go:embed page.html
var page []byte

func main() {
	agent := choice.Flags()
	port := flag.Int("port", 0, "where to listen on 127.0.0.1; 0: a free port")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	alone := os.Getenv("TROUPE_SMOKE") != "" || *port == 0 && !choice.Terminal(os.Stdin)
	if err := run(ctx, agent, *port, alone); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, agent *choice.Agent, port int, alone bool) error {
	opts, err := agent.Options()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	address := "http://" + listener.Addr().String()
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	server := &http.Server{
		Handler:           newSessions(*opts).routes(),
		BaseContext:       func(net.Listener) context.Context { return ctx }, // all requests end when ctx does
		ReadHeaderTimeout: 10 * time.Second,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	if alone {
		err = visit(ctx, address, "Say hello.", func(_, kind, data string) { fmt.Println(kind, data) })
	} else {
		fmt.Println("open", address)
		select {
		case err = <-served:
		case <-ctx.Done():
		}
	}
	leave()
	over, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return errors.Join(err, server.Shutdown(over)) // waits for the requests, which close their sessions
}
