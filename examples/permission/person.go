package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"sync"
)

// person answers questions in lines.
type person struct {
	one   sync.Mutex    // one question at a time
	lines <-chan string // closed when nobody is there
}

func newPerson(r io.Reader) *person {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(r); s.Scan(); {
			lines <- s.Text()
		}
	}()
	return &person{lines: lines}
}

// agrees reports whether the answer is y. It waits until there is one, or the
// agent no longer wants to know.
func (p *person) agrees(ctx context.Context, question string) bool {
	p.one.Lock()
	defer p.one.Unlock()
	fmt.Println(question, "(y or n)")
	select {
	case line := <-p.lines:
		return line == "y"
	case <-ctx.Done():
		return false
	}
}
