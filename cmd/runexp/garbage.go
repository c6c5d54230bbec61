package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"sync"
)

// firstCollection is how much memory Go allocates before the first garbage collection.
const firstCollection = 40 << 20

// collectLater postpones garbage collection until there is enough garbage. A plan of ten thousand cells
// needs less memory than that, and is made a tenth faster if no collection scans objects that live until
// its end. After the first collection, or a call of asUsual, Go collects as usual.
func collectLater() (asUsual func()) {
	percent := debug.SetGCPercent(-1)
	debug.SetMemoryLimit(firstCollection)
	asUsual = sync.OnceFunc(func() {
		debug.SetMemoryLimit(math.MaxInt64)
		debug.SetGCPercent(percent)
	})
	type sentinel struct{ _ [16]byte }
	runtime.SetFinalizer(&sentinel{}, func(*sentinel) { asUsual() })
	return asUsual
}
