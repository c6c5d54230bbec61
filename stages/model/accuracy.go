package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/internal/program"
)

// A Labelled is a photograph with a class.
type Labelled struct {
	Group  int     // its class among those of the data set, from 0
	Labels []int64 // its class among the model's by each hypothesis of their numbering

	// Image reads it at a size.
	Image func(size picture.Size) ([]byte, error)
}

// A Question is what is asked of a model's answers: how it is fed, and how its classes are numbered.
type Question struct {
	Feeds      []Feed
	Numberings []float64 // priors, which with Other add up to 1
	Other      float64   // prior that classes are numbered in none of these ways
	Passes     int       // forward passes that an answer may take

	// Progress is called after every batch, with the passes done and those that there are at most; or nil.
	Progress func(done, total int)
}

// A Hypothesis is a way to feed a model and to number its classes, and what speaks for it.
type Hypothesis struct {
	Feed, Numbering int // places in the question
	Likelihood
	Behind    float64 // how far the evidence is behind that of the likeliest, in nats
	Posterior float64
}

// A Verdict is the answer to a question.
type Verdict struct {
	Hypotheses []Hypothesis // the most probable first
	Other      float64      // the posterior probability that no numbering is right
	Images     int          // the most that any hypothesis was measured on
	Groups     int          // classes of these
	PerClass   [][2]int     // by group: images on which the most probable hypothesis is right, and all
	Unreadable int          // photographs that can't be read
	Unread     error        // why the first of them can't
	NaN        []int        // feeds with which the model answers NaN to some image

	others []float64 // by feed: how far the best numbering that wasn't tried is behind
}

const (
	// doubt is the posterior probability from which on a hypothesis is a question to the user.
	doubt = 0.05
	// leastRight is the number of photographs that must be classified rightly: one or two may be chance.
	leastRight = 3
	// toldApart is the lead, in nats, from which on images tell two hypotheses apart.
	toldApart = 5.0
	// hopeless is the lead from which on a feed isn't measured any more.
	hopeless = 12.0
	// firstRound is the number of photographs that every feed is measured on.
	firstRound = 12
	// eachRead is the number of photographs that are read at once.
	eachRead = 32
)

// Best returns the most probable hypothesis; false where it's about as probable that classes are numbered
// otherwise, or where it isn't clearly better than chance.
func (v *Verdict) Best() (Hypothesis, bool) {
	if len(v.Hypotheses) == 0 {
		return Hypothesis{}, false
	}
	best := v.Hypotheses[0]
	return best, v.Other < doubt && best.Gain > -math.Log(doubt) && best.Right >= leastRight
}

// Rivals returns the hypotheses that images don't tell apart from the best: those which leave a doubt, and
// those which only what is known beforehand speaks against.
func (v *Verdict) Rivals() (doubtful, unlikely []Hypothesis) {
	for _, h := range v.Hypotheses[min(1, len(v.Hypotheses)):] {
		switch {
		case h.Posterior >= doubt:
			doubtful = append(doubtful, h)
		case h.Behind-v.Hypotheses[0].Behind < toldApart:
			unlikely = append(unlikely, h)
		}
	}
	return doubtful, unlikely
}

// Weigh answers a question by photographs, which come in such an order that the first ones have many classes.
// Feeds that are hopeless after some photographs are measured on no more.
func (t *Trial) Weigh(ctx context.Context, q Question, photos []Labelled) (Verdict, error) {
	s, err := t.answering()
	if err != nil {
		return Verdict{}, err
	}
	defer s.close()
	e := &Evidence{Classes: t.Spec.Classes, Numberings: make([][]int64, len(q.Numberings))}
	alive := make([]int, len(q.Feeds))
	for i := range alive {
		alive[i] = i
	}
	slices.SortStableFunc(alive, func(i, k int) int { // those that one graph answers in a row
		f, g := q.Feeds[i], q.Feeds[k]
		return cmp.Or(cmp.Compare(f.Size.H, g.Size.H), cmp.Compare(f.Size.W, g.Size.W),
			cmp.Compare(f.order(), g.order()))
	})
	unreadable, done := 0, 0
	var unread error
	for next := 0; next < len(photos) && len(alive) > 0; {
		round := max(firstRound, len(e.Groups))
		if len(e.Groups) > 0 {
			round = min(round, (q.Passes-done)/len(alive))
		}
		if round <= 0 {
			break
		}
		for last := min(len(photos), next+round); next < last; {
			some := photos[next:min(last, next+max(s.batch, eachRead))]
			next += len(some)
			read := map[picture.Size][][]byte{}
			kept := 0
			for _, p := range some {
				b, err := p.Image(q.Feeds[alive[0]].Size)
				if err != nil {
					unreadable++
					unread = cmp.Or(unread, err)
					continue
				}
				kept++
				first := q.Feeds[alive[0]].Size
				read[first] = append(read[first], b)
				for _, f := range alive {
					if size := q.Feeds[f].Size; len(read[size]) < kept {
						if b, err = p.Image(size); err != nil {
							return Verdict{}, err
						}
						read[size] = append(read[size], b)
					}
				}
				e.Groups = append(e.Groups, p.Group)
				for i, l := range p.Labels {
					e.Numberings[i] = append(e.Numberings[i], l)
				}
			}
			if kept == 0 {
				continue
			}
			for _, f := range alive {
				for b := range slices.Chunk(read[q.Feeds[f].Size], s.batch) {
					rows, err := s.answers(ctx, q.Feeds[f], b)
					if err != nil {
						return Verdict{}, err
					}
					e.Add(f, rows...)
				}
				done += kept
			}
			if q.Progress != nil {
				q.Progress(done, max(done, min(q.Passes, len(photos)*len(q.Feeds))))
			}
		}
		if len(e.Groups) > 0 {
			v := e.verdict(q)
			behind := map[int]float64{}
			for _, h := range v.Hypotheses {
				if b, ok := behind[h.Feed]; !ok || h.Behind < b {
					behind[h.Feed] = h.Behind
				}
			}
			alive = slices.DeleteFunc(alive, func(f int) bool {
				ends := behind[f] > hopeless && v.others[f] > hopeless
				if ends { // it answers to no later images, so what it has answered decides
					e.fed[f].behind = behind[f]
				}
				return ends
			})
		}
	}
	if q.Progress != nil { // fewer passes than there could have been
		q.Progress(done, done)
	}
	if len(e.Groups) == 0 {
		return Verdict{}, fmt.Errorf("none of %d photographs with a class can be read; the first: %w",
			unreadable, cmp.Or(unread, errors.New("there is none")))
	}
	v := e.verdict(q)
	v.Unreadable, v.Unread = unreadable, unread
	for f, fed := range e.fed {
		if fed.broken {
			v.NaN = append(v.NaN, f)
		}
	}
	return v, nil
}

// verdict weighs all hypotheses by the answers so far.
func (e *Evidence) verdict(q Question) Verdict {
	v := Verdict{Images: len(e.Groups), others: make([]float64, len(q.Feeds))}
	likeliest, most := -1, 0
	for f := range q.Feeds {
		all, other := e.likelihoods(f, len(e.fed[f].logits))
		v.others[f] = other
		most = max(most, len(e.fed[f].logits))
		for k, l := range all {
			v.Hypotheses = append(v.Hypotheses, Hypothesis{Feed: f, Numbering: k, Likelihood: l})
		}
	}
	for i, h := range v.Hypotheses {
		if h.Images == most && (likeliest < 0 || h.Log > v.Hypotheses[likeliest].Log) {
			likeliest = i
		}
	}
	if likeliest < 0 { // there is no numbering
		return v
	}
	top := v.Hypotheses[likeliest]
	total := 0.0
	for i := range v.Hypotheses {
		h := &v.Hypotheses[i]
		if i != likeliest {
			h.Behind = max(e.fed[h.Feed].behind, e.lead(top.Likelihood, h.Likelihood))
		}
		h.Posterior = q.Feeds[h.Feed].Prior * q.Numberings[h.Numbering] * math.Exp(-h.Behind)
		total += h.Posterior
	}
	for f := range q.Feeds {
		v.others[f] = top.Log - v.others[f] // how far it is behind
		if len(e.fed[f].logits) == most {
			v.Other += q.Other * q.Feeds[f].Prior * math.Exp(-max(0, v.others[f]))
		} else {
			v.others[f] = math.Inf(1)
		}
	}
	total += v.Other
	v.Other /= total
	for i := range v.Hypotheses {
		v.Hypotheses[i].Posterior /= total
	}
	slices.SortStableFunc(v.Hypotheses, func(a, b Hypothesis) int {
		return cmp.Or(cmp.Compare(b.Posterior, a.Posterior), cmp.Compare(a.Behind, b.Behind))
	})
	v.PerClass = e.perClass(v.Hypotheses[0])
	v.Groups = len(v.PerClass)
	return v
}

// perClass counts by group the images on which a hypothesis is right.
func (e *Evidence) perClass(h Hypothesis) [][2]int {
	count := make([][2]int, slices.Max(e.Groups)+1)
	for i, row := range e.fed[h.Feed].logits {
		if int64(argmax(row)) == e.Numberings[h.Numbering][i] {
			count[e.Groups[i]][0]++
		}
		count[e.Groups[i]][1]++
	}
	return count
}

// RunsAt reports whether the model has as many classes on square images of a side.
func (t *Trial) RunsAt(ctx context.Context, side int) bool {
	s, err := t.answering()
	return err == nil && runsAt(ctx, s.model, side, side)
}

// answering runs a model that is fed in several ways. It keeps a single probe, for the graph depends on
// channel order and size, and a caller with a process of [ort.Isolated] must not wait for a second one.
type answering struct {
	model modelfile.Model
	batch int
	probe *program.Probe // nil at first
	fed   probeKey       // how probe is fed
}

type probeKey struct {
	order         string
	height, width int
}

func (t *Trial) answering() (*answering, error) {
	payload, err := t.model.Load(0)
	if err != nil {
		return nil, err
	}
	m, err := modelfile.Decode(payload)
	if err != nil {
		return nil, err
	}
	return &answering{model: m, batch: max(1, m.Spec.Batch)}, nil
}

func (s *answering) close() {
	if s.probe != nil {
		s.probe.Close()
	}
	s.probe = nil
}

// answers returns a row of scores, like logits, for each of at most a batch of images.
func (s *answering) answers(ctx context.Context, f Feed, images [][]byte) ([][]float32, error) {
	spec := s.model.Spec
	if !f.Size.IsZero() {
		spec.Height, spec.Width = f.Size.H, f.Size.W
	}
	if err := setPreprocessing(&spec, f.params()); err != nil {
		return nil, err
	}
	key := probeKey{spec.Order, spec.Height, spec.Width}
	if s.probe == nil || s.fed != key {
		s.close()
		p, err := program.NewProbe(modelfile.Model{Spec: spec, ONNX: s.model.ONNX}, s.batch)
		if err != nil {
			return nil, err
		}
		s.probe, s.fed = p, key
	}
	fed := make([]float32, spec.Size()*s.batch)
	for i, b := range images {
		image, err := stages.DecodeTensor(b)
		if err != nil {
			return nil, err
		}
		if err := spec.Normalise(image, fed[i*spec.Size():]); err != nil {
			return nil, err
		}
	}
	answer, err := s.probe.Answer(ctx, fed)
	if err != nil {
		return nil, err
	}
	width := len(answer.Data) / s.batch
	rows := make([][]float32, len(images))
	for i := range images {
		rows[i] = scores(answer.Data[i*width:(i+1)*width], spec)
	}
	return rows, nil
}

// leastProbability is what a probability of 0, which may be a rounded one, counts as; of logits, next to the
// largest.
const leastProbability = 1e-7

// scores returns what a softmax makes probabilities of: logits as they are, and logarithms of probabilities.
// A single number is the score of class 1 against class 0.
func scores(row []float32, spec modelfile.Spec) []float32 {
	out := slices.Clone(row)
	if spec.Probabilities {
		for i, p := range row {
			out[i] = float32(math.Log(max(float64(p), leastProbability)))
		}
	}
	if math.IsInf(float64(slices.Min(out)), -1) {
		lowest := slices.Max(out) + float32(math.Log(leastProbability))
		for i, v := range out {
			out[i] = max(v, lowest)
		}
	}
	if len(row) == 1 {
		none := 0.0
		if spec.Probabilities {
			none = math.Log(max(1-float64(row[0]), leastProbability))
		}
		out = []float32{float32(none), out[0]}
	}
	return out
}
