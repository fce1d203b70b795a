package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/agent-troupe/troupe/internal/command"
)

// A program that reads an answer says so every askEvery, and the host ends an answer that was not read for
// unreadFor.
const (
	askEvery   = 5 * time.Second
	unreadFor  = 3 * askEvery
	mostOfPart = 256 << 10
	headAsks   = "Troupe-Asks" // it is the same question
	headEnd    = "Troupe-End"  // the answer has ended; with its error
)

// asked is the subject of questions to a host.
func asked(host string) string { return "troupe.h." + key(host) + ".tail" }

// Serve implements command.Cluster.
func (d *directory) Serve(ctx context.Context, host string, answer func(ctx context.Context, question []byte, to io.Writer) error) error {
	var mu sync.Mutex
	var all sync.WaitGroup
	unread := map[string]*time.Timer{} // by the subject of the answer
	sub, err := d.nc.Subscribe(asked(host), func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		if t := unread[m.Reply]; t != nil {
			t.Reset(unreadFor)
			return
		}
		// An answer to another subject would be written with the rights of this host.
		if !strings.HasPrefix(m.Reply, nats.InboxPrefix) || m.Header.Get(headAsks) != "" || ctx.Err() != nil {
			return
		}
		reading, stop := context.WithCancel(ctx)
		unread[m.Reply] = time.AfterFunc(unreadFor, stop)
		all.Go(func() {
			defer stop()
			end := nats.NewMsg(m.Reply)
			end.Header.Set(headEnd, "1")
			if err := answer(reading, m.Data, parts{d.nc, m.Reply}); err != nil {
				end.Data = []byte(err.Error())
			}
			_ = d.nc.PublishMsg(end) // else the other side finds out by itself
			mu.Lock()
			defer mu.Unlock()
			unread[m.Reply].Stop()
			delete(unread, m.Reply)
		})
	})
	if err != nil {
		return fmt.Errorf("nats: %s: %w", asked(host), err)
	}
	<-ctx.Done()
	_ = sub.Unsubscribe()
	mu.Lock()   // no question comes from now on
	mu.Unlock() //nolint:staticcheck // it waits
	all.Wait()
	return nil
}

// parts sends what is written to it.
type parts struct {
	nc *nats.Conn
	to string
}

func (p parts) Write(b []byte) (n int, err error) {
	for len(b) > n && err == nil {
		part := b[n:min(n+mostOfPart, len(b))]
		if err = p.nc.Publish(p.to, part); err == nil {
			n += len(part)
		}
	}
	return n, err
}

// Ask implements command.Cluster.
func (d *directory) Ask(ctx context.Context, host string, question []byte) (io.ReadCloser, error) {
	inbox := nats.NewInbox()
	sub, err := d.nc.SubscribeSync(inbox)
	if err == nil {
		err = errors.Join(sub.SetPendingLimits(-1, -1), d.nc.PublishRequest(asked(host), inbox, question))
	}
	if err != nil {
		return nil, fmt.Errorf("nats: worker %s: %w", host, err)
	}
	reading, stop := context.WithCancel(ctx)
	from, to := io.Pipe()
	go func() {
		defer stop()
		defer func() { _ = sub.Unsubscribe() }()
		_ = to.CloseWithError(d.listen(reading, sub, to, host))
	}()
	return answering{from, stop}, nil
}

type answering struct {
	*io.PipeReader
	stop context.CancelFunc
}

// Close ends the question, too.
func (a answering) Close() error {
	a.stop()
	return a.PipeReader.Close()
}

// listen writes the parts of an answer until its end. Without an error the answer is whole.
func (d *directory) listen(ctx context.Context, sub *nats.Subscription, to io.Writer, host string) error {
	before := d.nc.LastError()
	for {
		within, cancel := context.WithTimeout(ctx, askEvery)
		m, err := sub.NextMsgWithContext(within)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			if denied := d.nc.LastError(); denied != before && errors.Is(denied, nats.ErrPermissionViolation) { //nolint:errorlint // is it the same one?
				return fmt.Errorf("nats: worker %s: this user may not ask it: %w", host, denied)
			}
			again := nats.NewMsg(asked(host))
			again.Reply = sub.Subject
			again.Header.Set(headAsks, "1")
			err = d.nc.PublishMsg(again)
		case errors.Is(err, nats.ErrNoResponders):
			return fmt.Errorf("worker %s: %w", host, command.ErrNoHost)
		case err != nil:
		case m.Header.Get(headEnd) != "" && len(m.Data) > 0:
			return fmt.Errorf("worker %s: %s", host, m.Data)
		case m.Header.Get(headEnd) != "":
			return nil
		default:
			_, err = to.Write(m.Data)
		}
		if err != nil {
			return err
		}
	}
}
