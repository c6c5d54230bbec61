package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/attribute"
)

// sleepingMain has attribute/constant sleep for $SLEEP each item, one after the other as a device would
// compute them, and append when it began and ended, in Unix nanoseconds, and how many items it was given, to
// a file of its own in the folder $INTERVALS.
func sleepingMain() {
	each, err := time.ParseDuration(os.Getenv("SLEEP"))
	if err != nil {
		panic(err)
	}
	name := filepath.Join(os.Getenv("INTERVALS"), strconv.Itoa(os.Getpid()))
	var device sync.Mutex
	run := attribute.Constant.Run
	attribute.Constant.Run = func(ctx context.Context, params any, e *stages.Env) error {
		device.Lock()
		defer device.Unlock()
		begin := time.Now()
		time.Sleep(time.Duration(e.Len()) * each)
		if err := run(ctx, params, e); err != nil {
			return err
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = fmt.Fprintln(f, begin.UnixNano(), time.Now().UnixNano(), e.Len())
		return err
	}
	main()
}

const asleep = `name: asleep
stages:
  images: {uses: dataset/shapes, with: {count: %d, size: 16}}
  maps: {uses: attribute/constant, in: {images: images}}
  mass: {uses: score/mass-accuracy, in: {maps: maps, masks: images.masks}}
  table: {uses: report/table, in: {values: mass}, over: all}
publish: [table]
`

// TestManyWorkers measures how well 64 processes on this machine divide items that only sleep, and how well
// they do when one in ten is lost. See docs/scaling.md.
func TestManyWorkers(t *testing.T) {
	const env = "RUNEXP_BENCH_CLUSTER"
	if os.Getenv(env) == "" {
		t.Skip("it takes a quarter of an hour: make bench-cluster, which sets $" + env)
	}
	for _, c := range []struct {
		name         string
		lost, shares int
		least        float64
	}{
		{"all workers", 0, 20, 0.95},
		{"one in ten is lost", 6, 10, 0.9},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &sleepers{world: newWorld(t, nil), workers: 64, lost: c.lost, each: 500 * time.Millisecond,
				shares: 64 * c.shares, items: 64 * c.shares * 40}
			if e := s.measure(); e < c.least {
				t.Errorf("the efficiency is %.3f, want %v", e, c.least)
			}
		})
	}
}

// sleepers are processes that take the shares of an experiment, one after the other.
type sleepers struct {
	*world
	workers, lost, shares, items int
	each                         time.Duration // that an item sleeps
}

// measure returns the parallel efficiency: the time that all items sleep, once, divided by the time in which
// workers were there, from the beginning to the end of the last share or until they were lost.
func (s *sleepers) measure() float64 {
	s.Helper()
	s.write("asleep.yaml", fmt.Appendf(nil, asleep, s.items))
	if err := os.Mkdir(s.path("intervals"), 0o777); err != nil {
		s.Fatal(err)
	}
	queue := make(chan int, s.shares)
	for k := range s.shares {
		queue <- k
	}
	s.env = []string{"SLEEP=" + s.each.String(), "INTERVALS=" + s.path("intervals"), "GOMAXPROCS=2"}
	var left, wait sync.WaitGroup
	left.Add(s.shares)
	x := rand.New(rand.NewPCG(1, 2))
	expected := time.Duration(s.items) * s.each / time.Duration(s.workers)
	began, gone := time.Now(), time.Duration(0)
	for n := range s.workers {
		var end <-chan time.Time // the loss of the worker
		if n < s.lost {
			at := time.Duration((0.1 + 0.8*x.Float64()) * float64(expected))
			end, gone = time.After(at), gone+at
		}
		wait.Go(func() {
			for k := range queue {
				if !s.work(k, end) {
					queue <- k
					return
				}
				left.Done()
			}
		})
	}
	left.Wait()
	took := time.Since(began)
	close(queue)
	wait.Wait()
	begin := time.Now()
	s.run(0, "run", "asleep.yaml", "--share", "close")
	closing := time.Since(begin)
	busy, items, processes := s.intervals()
	there := time.Duration(s.workers-s.lost)*took + gone
	useful := time.Duration(s.items) * s.each
	efficiency := useful.Seconds() / there.Seconds()
	s.Logf("%d workers, %d lost: %d shares of %.1f s of sleep, %.1f s; efficiency %.3f", s.workers, s.lost,
		s.shares, useful.Seconds()/float64(s.shares), took.Seconds(), efficiency)
	s.Logf("%d items executed, %d of them again; %d processes were within intervals for %.3f of their time; "+
		"closing %.1f s", items, items-s.items, processes, busy.Seconds()/there.Seconds(), closing.Seconds())
	return efficiency
}

// work executes share k, and reports whether the worker is still there.
func (s *sleepers) work(k int, lost <-chan time.Time) bool {
	cmd := s.prepare("runexp-sleeping", "run", "asleep.yaml", "--quiet", "--devices", "cpu:0", "--share",
		fmt.Sprintf("%d/%d", k, s.shares))
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		s.Error(err)
		return true
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			s.Errorf("share %d: %v: %s", k, err, &errs)
		}
		return true
	case <-lost:
		cmd.Process.Kill()
		<-ended
		return false
	}
}

// intervals returns how long items slept, how many did, and in how many processes.
func (s *sleepers) intervals() (busy time.Duration, items, processes int) {
	s.Helper()
	files, err := filepath.Glob(s.path("intervals/*"))
	if err != nil {
		s.Fatal(err)
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			s.Fatal(err)
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			var begin, end int64
			var n int
			if _, err := fmt.Sscan(lines.Text(), &begin, &end, &n); err != nil {
				continue // torn, as its process was killed
			}
			busy += time.Duration(end - begin)
			items += n
		}
		f.Close()
	}
	return busy, items, len(files)
}
