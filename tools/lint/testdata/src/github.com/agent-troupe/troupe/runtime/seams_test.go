package runtime

import "time"

func inTest() {
	go time.Sleep(time.Second)
}
