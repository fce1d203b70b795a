package supervisor

func selects(a, b chan int, done <-chan struct{}) {
	select { // want `picks at random when two of its channels are ready`
	case <-a:
	case b <- 1:
	}
	select { // want `picks at random`
	case <-a:
	case <-done:
	default: // taken only when neither is ready
	}
	select {
	case <-a:
	default:
	}
	select {
	case v := <-a:
		_ = v
	}
	//troupe:select the second is checked again behind it
	select {
	case <-a:
	case <-done:
	}
	//troupe:select one channel only // want `allows nothing`
	select {
	case <-a:
	}
	//troupe:selekt a typo // the rule "directives" reports it
	select { // want `picks at random`
	case <-a:
	case <-b:
	}
}
