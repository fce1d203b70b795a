package user

// Sizes of a fifo's blocks, in items: the first, which an empty fifo keeps, and
// the largest.
const (
	firstBlock = 2
	lastBlock  = 128
)

// fifo is a queue that neither copies what it holds nor keeps what it gave out.
type fifo[T any] struct {
	blocks [][]T // none is empty, but that of an empty queue; only the last is added to
	head   int   // of the first block: what is before was given out
	n      int
}

func (f *fifo[T]) len() int  { return f.n }
func (f *fifo[T]) front() *T { return &f.blocks[0][f.head] }

func (f *fifo[T]) push(v T) {
	size := firstBlock
	if n := len(f.blocks); n > 0 {
		last := f.blocks[n-1]
		size = min(2*cap(last), lastBlock)
		if len(last) < cap(last) {
			f.blocks[n-1] = append(last, v)
			f.n++
			return
		}
	}
	f.blocks = append(f.blocks, append(make([]T, 0, size), v))
	f.n++
}

// pushAll takes a block of items, which is the queue's from now on.
func (f *fifo[T]) pushAll(block []T) {
	if len(block) == 0 {
		return
	}
	if f.n == 0 {
		f.blocks, f.head = f.blocks[:0], 0
	}
	f.blocks = append(f.blocks, block)
	f.n += len(block)
}

// rest gives up the block that an empty fifo keeps: nothing may come for long.
func (f *fifo[T]) rest() {
	if f.n == 0 {
		f.blocks = nil
	}
}

// compact has each item changed, and gives up room for others, if there are few: nothing
// may come for long.
func (f *fifo[T]) compact(change func(*T)) {
	f.rest()
	if f.n == 0 || f.n > lastBlock {
		return
	}
	all := make([]T, 0, f.n)
	for i, block := range f.blocks {
		if i == 0 {
			block = block[f.head:]
		}
		for j := range block {
			change(&block[j])
		}
		all = append(all, block...)
	}
	f.blocks, f.head = [][]T{all}, 0
}

func (f *fifo[T]) pop() T {
	var zero T
	first := f.blocks[0]
	v := first[f.head]
	first[f.head] = zero
	f.head++
	f.n--
	switch {
	case f.n == 0:
		f.blocks, f.head = f.blocks[:1], 0
		if f.blocks[0] = first[:0]; cap(first) > firstBlock {
			f.blocks = nil
		}
	case f.head == len(first):
		f.blocks[0] = nil
		f.blocks, f.head = f.blocks[1:], 0
	}
	return v
}
