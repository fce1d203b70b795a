package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
)

// person answers questions in lines.
type person struct {
	one   sync.Mutex    // one question at a time
	lines <-chan string // closed when the person is gone
}

func newPerson(r io.Reader) *person {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(r); s.Scan(); {
			lines <- strings.TrimSpace(s.Text())
		}
	}()
	return &person{lines: lines}
}

// asked waits for the answer. there is false when the person is gone, or when the agent
// no longer waits.
func (p *person) asked(ctx context.Context, question string) (answer string, there bool) {
	p.one.Lock()
	defer p.one.Unlock()
	fmt.Println(question)
	select {
	case answer, there = <-p.lines:
		return answer, there
	case <-ctx.Done():
		return "", false
	}
}
