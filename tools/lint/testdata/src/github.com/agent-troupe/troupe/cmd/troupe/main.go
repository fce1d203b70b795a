package main

import "time"

var started = time.Now()

func main() {
	go time.Sleep(time.Since(started))
	a, b := make(chan int), make(chan int)
	select {
	case <-a:
	case <-b:
	}
}
