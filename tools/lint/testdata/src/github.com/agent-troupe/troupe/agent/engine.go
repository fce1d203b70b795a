package agent

func engine() {
	go pump() // want `a bare go statement`
}
