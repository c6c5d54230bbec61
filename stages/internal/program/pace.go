package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
)

// A pace is what is known of how many rows a second a program computes on a device, by its batch.
type pace struct {
	mu sync.Mutex // guards the rest

	Best int     `json:"best"` // the batch that computes most rows a second, of those that were tried
	Rate float64 `json:"rate"` // how many
	Done bool    `json:"done"` // larger ones compute no more of them, or are too large
}

func (*pace) Close() error { return nil }

const (
	// least is the batch that a device is tried with first, and gets untried: it is small.
	least = 16
	// gain is by how much a batch must be faster than one of half the size for its memory to be worth while.
	gain = 1.1
	// long is a run whose fixed costs don't count any more, so that a larger batch can't be much faster.
	long = 200 * time.Millisecond
	// patience is how long batches of a program are tried.
	patience = 20 * time.Second
)

// paced returns the batch of a program on a slot: the one given, unless the slot is [stages.Remembering] and
// its device computes more rows a second with a smaller one, or has no memory for it. The first time it tries
// batches, each twice as large as the one before, and the slot remembers what it found.
//
// A processor's batches follow from its caches, see [Net.AtOnce].
func (n *Net) paced(ctx context.Context, slot stages.Slot, key string, batch int,
	r lower.Request) (int, error) {
	memory := memoryOf(slot)
	if memory == nil || slot.Device().Class == "cpu" || n.Batch > 0 || batch <= least {
		return batch, nil
	}
	key = fmt.Sprintf("pace of program %s of %s", key, n.digest)
	c, err := slot.Share(key, 0, func() (io.Closer, error) {
		p := &pace{}
		if b, ok := memory.Recall(key); ok && json.Unmarshal(b, p) != nil {
			p = &pace{}
		}
		return p, nil
	})
	if err != nil {
		return 0, err
	}
	p := c.(*pace)
	p.mu.Lock()
	defer p.mu.Unlock()
	tried := false
	for began := time.Now(); !p.Done && p.next() <= batch; p.Done = p.Done || time.Since(began) > patience {
		tried = true
		if err := p.try(ctx, p.next(), func(batch int) (time.Duration, error) {
			return n.timed(ctx, slot, batch, r)
		}); err != nil {
			return 0, err
		}
	}
	if tried {
		if b, err := json.Marshal(p); err == nil {
			memory.Remember(key, b)
		}
	}
	if p.Done {
		runs := (batch-1)/p.Best + 1
		batch = (batch-1)/runs + 1
	}
	return batch, nil
}

// memoryOf returns the memory of a slot, nil if it has none.
func memoryOf(slot stages.Slot) stages.Memory {
	if r, ok := slot.(stages.Remembering); ok {
		return r.Memory()
	}
	return nil
}

// next returns the batch to try next.
func (p *pace) next() int { return max(least, 2*p.Best) }

// try takes the time of a batch. One that fails is too large, unless the device is lost, or it is the first
// and fails for another reason than lack of memory.
func (p *pace) try(ctx context.Context, batch int, timed func(int) (time.Duration, error)) error {
	took, err := timed(batch)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && p.Best == 0 && errors.Is(err, stages.ErrOutOfMemory):
		p.Best, p.Done = batch/2, true
		return nil
	case err != nil && (p.Best == 0 || errors.Is(err, stages.ErrDeviceLost)):
		return err
	case err != nil:
		p.Done = true
		return nil
	}
	rate := float64(batch) / took.Seconds()
	p.Done = rate < gain*p.Rate || took > long
	if rate >= gain*p.Rate {
		p.Best, p.Rate = batch, rate
	}
	return nil
}

// timed returns how long a run of a program has the device, when what has to be done once is done.
func (n *Net) timed(ctx context.Context, slot stages.Slot, batch int, r lower.Request) (_ time.Duration,
	err error) {
	lowered, err := n.compile(ctx, slot, batch, r)
	if err != nil {
		return 0, err
	}
	l, err := n.open(ctx, slot, lowered)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	p, err := allocate(l)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := p.on(n, unmetered{slot}, l); err != nil {
		return 0, err
	}
	for range 2 {
		if err := p.run(ctx); err != nil {
			return 0, err
		}
	}
	return p.binding.Took, nil
}

// An unmetered slot counts no passes and records no programs.
type unmetered struct{ stages.Slot }
