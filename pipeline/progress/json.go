package progress

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/runexp/runexp/pipeline"
)

// A jsonLine is an event as one line of JSON. An event leaves out the fields that don't apply to it.
type jsonLine struct {
	Event   string  `json:"event"`
	Cell    string  `json:"cell,omitempty"`
	Stage   string  `json:"stage,omitempty"`
	Done    *int    `json:"done,omitempty"`
	Total   *int    `json:"total,omitempty"`
	Device  string  `json:"device,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	Error   string  `json:"error,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	Left    float64 `json:"left,omitempty"` // seconds until the expected end of the run
	Folder  string  `json:"folder,omitempty"`
	Answer  string  `json:"answer,omitempty"`
}

type stream struct {
	mu sync.Mutex // guards w, so that lines aren't mixed
	w  *json.Encoder
}

// JSON returns a display that writes every event as a line of JSON.
func JSON(w io.Writer) Display { return newStream(w) }

func newStream(w io.Writer) *stream {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return &stream{w: e}
}

// Published writes the last line of JSON: the review folder with the results, and the answer at the
// beginning of its README.
func Published(w io.Writer, folder, answer string) {
	_ = newStream(w).w.Encode(jsonLine{Event: "published", Folder: folder, Answer: answer})
}

func (s *stream) Show(e pipeline.Event) {
	r := jsonLine{
		Event: e.Kind.String(), Cell: e.Cell, Stage: e.Step, Device: e.Device, Reason: e.Reason,
		Seconds: e.Took.Seconds(), Left: e.Left.Round(time.Second).Seconds(),
	}
	if e.Kind == pipeline.Planned || e.Kind == pipeline.Items || e.Kind == pipeline.Finished {
		r.Done, r.Total = &e.Done, &e.Total
	}
	if e.Err != nil {
		r.Error = e.Err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.w.Encode(r) // a reader that has gone must not stop the run
}

func (s *stream) Close() {}
