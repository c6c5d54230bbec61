// Package execute executes cells on slots of devices, and stores their results.
//
//   - execute: an [Executor] has the slots of a run; worker: a goroutine at one of them.
//   - job: cells that are executed together, in four phases.
//   - open: the calls whose outcomes aren't known, cut into chunks; piece: the chunks that a worker takes.
//   - compute, call: a chunk, member by member; the stage's function.
//   - store: payloads and records of items.
//   - commit: a cell's results, under its key.
//   - inflight: payloads that live only during a job.
//   - probation: results of other devices are compared with the processor's.
//   - restore: lost results are computed again.
//   - speed: the cost of a cell's calls.
package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/key"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/resolve"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A Store is the part of the store that executing needs.
type Store interface {
	Put(payloads [][]byte) ([]store.Ref, error)
	Load(store.Ref) ([]byte, error)
	Check(store.ObjectRef) *store.Miss
	NewItems() *store.Items
	Items(group stages.Digest, madeBy string) *store.Items
	RecordItems(group stages.Digest, madeBy string, records []store.ItemRecord) error
	NewListing(stages.Facts, store.Parts) *store.Listing
	Record(store.Action, []*store.Listing) error
	Lookup(key stages.Digest, prefer string) (store.Hit, bool)
	FileUnchanged(path string, digest stages.Digest) error
}

// Events are called from any goroutine as the work goes on.
type Events interface {
	Started(c *plan.Cell, items int)
	Computed(c *plan.Cell, done, items int, device string)
	Committed(n *resolve.Cell, spent Speed)
	Warn(c *plan.Cell, text string)
	DeviceLost(device, text string) // other devices go on
	SlotFree()
}

// Config is the configuration of an [Executor].
type Config struct {
	Resolver    *resolve.Resolver
	Store       Store
	Devices     []stages.Device // at least one
	Batch       int             // passes given to a device at once; 0 for the default
	Chunk       int             // items of one chunk; 0 for the default
	Compare     int             // see [Probation]
	DeviceBytes int64           // bounds the sessions on one device; 0 for 4 GiB
	KnownOnly   bool            // executes no items: cells that lack some are postponed
	Events      Events
}

// An Executor has the slots of a run, and the common state of its jobs.
type Executor struct {
	Config
	batch  int
	ctx    context.Context // ended by the loss of the last device, too
	cancel context.CancelCauseFunc

	host      chan *device.Slot // the free ones
	devices   chan *device.Slot // empty until first is done
	first     sync.Once
	alive     atomic.Int32      // number of devices that aren't lost; processors count as one
	gone      chan struct{}     // closed when no device is left
	checker   chan *device.Slot // of the processor, for comparisons with it
	storing   chan struct{}     // has an element for each chunk that is stored while its slot computes
	hostCache *device.Cache
	caches    []*device.Cache // all of them

	trials trials
	work   func() []work // by index in the plan, made for the first job
	worked atomic.Bool   // there was one

	items, restored atomic.Int64 // executed items, and cells computed again
}

// A work is an executor's record of a cell.
type work struct {
	meter     meter
	total     atomic.Int32 // number of calls of the job that executes it, 0 while unknown
	batch     atomic.Int32 // a batch that fits in memory, once it is known to be smaller than the executor's
	restoring sync.Mutex   // held while the cell is executed again
}

// New returns an executor. It makes the slots of the host, and sets the resolver's cache for compiling
// programs. Host slots have their own cache, so that a device never waits on work that waits for a device.
func New(ctx context.Context, c Config) *Executor {
	x := &Executor{Config: c, batch: cmp.Or(c.Batch, usualBatch(c.Devices[0].Class)),
		gone: make(chan struct{})}
	x.work = sync.OnceValue(func() []work { return make([]work, len(c.Resolver.Cells)) })
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	x.hostCache = x.newCache()
	x.Resolver.Compiling = x.hostCache
	if slices.ContainsFunc(x.Devices, func(d stages.Device) bool { return d.Class == "cpu" }) {
		x.Resolver.Compiling = x.newCache()
	}
	x.host = make(chan *device.Slot, runtime.GOMAXPROCS(0))
	for i := range cap(x.host) {
		x.host <- x.hostCache.NewSlot(stages.Device{Class: "cpu", Index: i, Threads: 1})
	}
	x.devices = make(chan *device.Slot, device.Slots(x.Devices))
	x.storing = make(chan struct{}, cap(x.devices))
	x.checker = make(chan *device.Slot, 1)
	x.checker <- x.hostCache.NewSlot(stages.Device{Class: "cpu", Threads: runtime.GOMAXPROCS(0)})
	return x
}

// Context ends when nothing more is to be executed: with the cause of the context given to [New], or
// because no device is left.
func (x *Executor) Context() context.Context { return x.ctx }

// End ends the executor's context.
func (x *Executor) End() { x.cancel(nil) }

// Close frees the devices.
func (x *Executor) Close() {
	for _, c := range x.caches {
		c.Trim()
	}
}

// Probation returns how much the devices' results deviate from the processor's.
func (x *Executor) Probation() Probation { return x.trials.sum() }

// Executed returns how many items were executed, and how many cells were computed again.
func (x *Executor) Executed() (items, restored int) {
	return int(x.items.Load()), int(x.restored.Load())
}

func (x *Executor) of(n *resolve.Cell) *work { return &x.work()[n.Index] }

// usualBatch returns the default number of passes that are given to a device of a class at once: programs
// on a GPU may find that fewer are as good.
func usualBatch(class string) int {
	if class == "cpu" {
		return 16
	}
	return 256
}

func (x *Executor) newCache() *device.Cache {
	c := device.NewCache(cmp.Or(x.DeviceBytes, 4<<30))
	x.caches = append(x.caches, c)
	return c
}

// openDevices makes the devices' slots, a processor's on one cache, when there is work for one for the
// first time, with this many items.
func (x *Executor) openDevices(items int) {
	x.first.Do(func() {
		caches := map[stages.Device]*device.Cache{}
		if x.alive.Store(1); x.Devices[0].Class != "cpu" {
			x.alive.Store(int32(len(x.Devices)))
		}
		for _, d := range device.For(items, x.Devices) {
			cache := x.Resolver.Compiling
			if d.Class != "cpu" {
				if cache = caches[d]; cache == nil {
					cache = x.newCache()
					if x.Batch == 0 {
						cache.Memory = found{x.Resolver, d}
					}
					caches[d] = cache
				}
			}
			x.devices <- cache.NewSlot(d)
		}
	})
}

// A found stores facts that programs found out about a device, for runs on the same kind of device.
type found struct {
	resolver *resolve.Resolver
	device   stages.Device
}

func (f found) key(what string) stages.Digest {
	return key.Of("found", nil, []string{f.resolver.MadeHere, f.device.String(), what})
}

// Recall implements [stages.Memory].
func (f found) Recall(what string) ([]byte, bool) { return f.resolver.Store.Memo(f.key(what)) }

// Remember implements [stages.Memory].
func (f found) Remember(what string, b []byte) {
	_ = f.resolver.Store.SetMemo(f.key(what), b) // if it fails, the next run finds them again
}

func (x *Executor) warn(c *plan.Cell, format string, args ...any) {
	x.Events.Warn(c, fmt.Sprintf(format, args...))
}

// errNoDevice is the error of work that needs a device when none is left.
var errNoDevice = errors.New("no device is left")
