package execute

import (
	"time"

	"github.com/runexp/runexp/pipeline/plan"
)

// A Piece is the part of a job that one worker computes at once: a chunk or, in a job that collapses its
// own results, several.
type Piece struct {
	job    *Job
	calls  []int32
	chunks [][]int32
	Last   bool // no further piece of the job is left to start
}

// Pieces reports whether the chunks of an open job are to be started one by one, on slots of devices or in
// parallel; a worker runs other jobs to their end at once, see [Worker.RunAll].
func (j *Job) Pieces() bool { return len(j.chunks) > 1 || len(j.chunks) == 1 && j.device() }

// RunAll computes and commits a job that has no pieces.
func (w *Worker) RunAll(j *Job) {
	for _, chunk := range j.chunks {
		w.executor.started(j)
		w.compute(j, chunk, func() {})
	}
	w.Commit(j)
}

// Begin prepares for the pieces of an open job: the first job that needs devices opens them.
func (x *Executor) Begin(j *Job) {
	if !j.device() {
		return
	}
	items := 0
	for _, m := range j.members {
		items = max(items, len(m.known))
	}
	if items == 0 { // a Whole stage has none
		items = len(x.Devices)
	}
	x.openDevices(items)
}

func (x *Executor) started(j *Job) {
	for _, m := range j.members {
		x.Events.Started(m.cell.Cell, j.total)
	}
}

// Next takes the next piece of j for a worker. A job that collapses its own results begins with single
// items, and continues with as many as their bytes allow.
func (w *Worker) Next(j *Job) Piece {
	if j.next == 0 {
		j.start = time.Now()
		w.executor.started(j)
	}
	first, chunks := j.chunks[j.next], 1
	calls, room := first, 0
	if most := j.perItem.Load(); most > 0 {
		room = min(j.most, int(LiveBytes/int64(cap(w.home))/most))
	}
	for _, more := range j.chunks[j.next+1:] {
		if len(calls)+len(more) > room {
			break
		}
		calls, chunks = append(calls[:len(calls):len(calls)], more...), chunks+1
	}
	p := Piece{j, calls, j.chunks[j.next : j.next+chunks], false}
	j.next += chunks
	p.Last = j.next == len(j.chunks)
	return p
}

// Run computes a piece. While its results are stored, the slot computes the job's next piece. At most as
// many pieces are stored at a time as there are devices, so that a slow disk doesn't fill the memory.
// committed means that the whole job is done, lost that the device is lost and the piece has to be put
// back.
func (w *Worker) Run(p Piece) (committed, lost bool, err error) {
	j := p.job
	defer plan.Catch(&err) // a panic after the commit leaves committed as it is
	func() {
		defer plan.Catch(&err)
		w.compute(j, p.calls, func() {
			if !p.Last && !j.onProbation || j.mayCompareLater() && !w.away {
				w.makeRoom(j.onProbation)
			}
		})
	}()
	if w.lost != nil {
		w.leaveRoom()
		w.lose(w.lost)
		return false, true, nil
	}
	if committed = j.left.Add(int32(-len(p.chunks))) == 0; committed {
		w.Commit(j)
	}
	w.leaveRoom()
	return committed, false, err
}

// PutBack puts a piece, whose device was lost, back into its job. It reports whether all others of the job
// had been started.
func (p Piece) PutBack() (all bool) {
	j := p.job
	all = j.next == len(j.chunks)
	j.chunks = append(j.chunks, p.chunks...)
	return all
}

// Fail makes the job of a piece fail with the piece's error.
func (p Piece) Fail(err error) { p.job.members[0].fail(err) }
