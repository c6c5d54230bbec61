package onnx

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// ReadFile reads a model with all data that it keeps in other files, so that none is opened later. Those
// files must be in the model's folder or below it, after following links: relative names count from there,
// also in functions, for which ONNX Runtime itself uses the working folder. A hard link is as good as the
// file: nothing shows which of its names was first, and only the bytes count.
func ReadFile(path string) (*Model, error) {
	b, err := stages.ReadFile(path, MaxBytes)
	if err != nil {
		return nil, err
	}
	m, err := parse(b)
	if err == nil {
		err = m.inline(filepath.Dir(path), int64(len(b)))
	}
	if err == nil {
		err = m.settle()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// inline replaces references to files in folder by their data; size is the size of the model without them.
func (m *Model) inline(folder string, size int64) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	return eachTensor(m.Proto, func(t *onnxpb.TensorProto) error {
		if t.DataLocation != onnxpb.TensorProto_EXTERNAL {
			return nil
		}
		want, err := storedSize(t)
		if err != nil {
			return err
		}
		if size += max(want, 0); size > MaxBytes {
			return fmt.Errorf("the model has more than %d bytes with its weights", MaxBytes)
		}
		if err := inline(root, t, want); err != nil {
			return fmt.Errorf("%s: %w", weight(t), err)
		}
		return nil
	})
}

// weight names a tensor in messages.
func weight(t *onnxpb.TensorProto) string {
	if t.Name == "" {
		return "a constant without a name"
	}
	return fmt.Sprintf("weight %q", t.Name)
}

func inline(root *os.Root, t *onnxpb.TensorProto, want int64) error {
	if want < 0 {
		return fmt.Errorf("its type %d can't stand in another file", t.DataType)
	}
	location, offset, length, err := reference(t)
	if err != nil {
		return err
	}
	if length >= 0 && length != want {
		return fmt.Errorf("its shape %v needs %d bytes, %q declares %d", t.Dims, want, location,
			length)
	}
	f, err := openData(root, location)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if offset > info.Size()-want {
		return fmt.Errorf("%q has %d bytes, %d from %d are needed", location, info.Size(), want, offset)
	}
	t.RawData = make([]byte, want)
	if _, err := f.ReadAt(t.RawData, offset); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	t.DataLocation, t.ExternalData = onnxpb.TensorProto_DEFAULT, nil
	return nil
}

// openData opens a file with weights. If it is missing, the error isn't fs.ErrNotExist: the requested model
// exists, but isn't complete.
func openData(root *os.Root, location string) (*os.File, error) {
	f, err := root.OpenFile(location, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		f, err = stages.Regular(f)
	}
	if err == nil {
		return f, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("its data should be in %q, and there is no such file in the model's folder: "+
			"copy it there from where the model was exported", location)
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	// A file that the system finds on a path refused by the folder is elsewhere.
	if _, elsewhere := os.Stat(filepath.Join(root.Name(), location)); elsewhere == nil &&
		!errors.Is(err, fs.ErrPermission) && !errors.Is(err, stages.ErrNotRegular) &&
		!errors.Is(err, stages.ErrPointer) {
		return nil, fmt.Errorf("its data at %q is outside the model's folder, by a link: copy the file "+
			"itself there", location)
	}
	return nil, fmt.Errorf("its data in %q can't be read: %w", location, err)
}

// reference returns the position of t's data; length is -1 if it isn't stated.
func reference(t *onnxpb.TensorProto) (location string, offset, length int64, err error) {
	length = -1
	for _, e := range t.ExternalData {
		switch e.Key {
		case "location":
			location = filepath.FromSlash(e.Value)
		case "offset":
			offset, err = strconv.ParseInt(e.Value, 10, 64)
		case "length":
			length, err = strconv.ParseInt(e.Value, 10, 64)
		}
		if err != nil || offset < 0 {
			return "", 0, 0, fmt.Errorf("the %s %q of its data makes no sense", e.Key, e.Value)
		}
	}
	if !filepath.IsLocal(location) {
		return "", 0, 0, fmt.Errorf("its data at %q is outside the model's folder: export the model again, "+
			"with its weights in that folder", location)
	}
	return location, offset, length, nil
}

// ExternalFiles returns the paths of the external files with weights of the model, sorted; all of them can
// be opened. It skips over the weights and so reads little of a large model.
func ExternalFiles(path string) ([]string, error) {
	f, err := stages.OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var files []string
	s := &scanner{f: f}
	s.buf.Reset(io.NewSectionReader(f, 0, info.Size()))
	err = s.tensors((&onnxpb.ModelProto{}).ProtoReflect().Descriptor(), info.Size(), 0,
		func(t *onnxpb.TensorProto) error {
			if t.DataLocation != onnxpb.TensorProto_EXTERNAL {
				return nil
			}
			location, _, _, err := reference(t)
			if err != nil {
				return fmt.Errorf("%s: %w", weight(t), err)
			}
			file := filepath.Join(filepath.Dir(path), location)
			if slices.Contains(files, file) {
				return nil
			}
			data, err := openData(root, location)
			if err != nil {
				return fmt.Errorf("%s: %w", weight(t), err)
			}
			files = append(files, file)
			return data.Close()
		})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, s.explained(err))
	}
	slices.Sort(files)
	return files, nil
}

const (
	nameField     = 8  // of TensorProto
	externalField = 13 // of TensorProto
	locationField = 14 // of TensorProto
)

// A scanner walks over the fields of messages in a file.
type scanner struct {
	f   *os.File
	buf bufio.Reader
	pos int64
}

var errNotONNX = errors.New("the file is not an ONNX model, or cut off")

// explained returns an error that names the kind of file that is there instead of a model, if that is
// known.
func (s *scanner) explained(err error) error {
	if err != errNotONNX {
		return err
	}
	head := make([]byte, 4096)
	n, _ := s.f.ReadAt(head, 0)
	if stages.Mistaken(head[:n]) == nil {
		return err
	}
	return notONNX(head[:n], err)
}

// message calls visit for every length-delimited field up to end, then continues after the field, however
// much visit read of it.
func (s *scanner) message(end int64, visit func(field protowire.Number, end int64) error) error {
	for s.pos < end {
		tag, err := s.varint()
		if err != nil {
			return err
		}
		field, typ := protowire.DecodeTag(tag)
		next := s.pos
		switch typ {
		case protowire.VarintType:
			if _, err := s.varint(); err != nil {
				return err
			}
			continue
		case protowire.Fixed32Type:
			next += 4
		case protowire.Fixed64Type:
			next += 8
		case protowire.BytesType:
			n, err := s.varint()
			if err != nil {
				return err
			}
			if n > uint64(end-s.pos) {
				return errNotONNX
			}
			next = s.pos + int64(n)
			if err := visit(field, next); err != nil {
				return err
			}
		default:
			return errNotONNX
		}
		if next > end {
			return errNotONNX
		}
		s.seek(next)
	}
	return nil
}

// deepest bounds the nesting of messages. ONNX Runtime accepts less.
const deepest = 1000

// tensors visits the tensors in a message of this kind, wherever its fields lead to one.
func (s *scanner) tensors(kind onnxpb.Kind, end int64, depth int,
	visit func(*onnxpb.TensorProto) error) error {
	if kind.FullName() == tensorName {
		t, err := s.tensor(end)
		if err != nil {
			return err
		}
		return visit(t)
	}
	if depth > deepest {
		return errNotONNX
	}
	return s.message(end, func(field protowire.Number, end int64) error {
		f := kind.Fields().ByNumber(field)
		if f == nil || f.Message() == nil {
			return nil
		}
		return s.tensors(f.Message(), end, depth+1, visit)
	})
}

var tensorName = (&onnxpb.TensorProto{}).ProtoReflect().Descriptor().FullName()

// tensor reads a tensor's references to other files, without its data.
func (s *scanner) tensor(end int64) (*onnxpb.TensorProto, error) {
	var b []byte
	for s.pos < end {
		tag, err := s.varint()
		if err != nil {
			return nil, err
		}
		field, typ := protowire.DecodeTag(tag)
		switch typ {
		case protowire.VarintType:
			v, err := s.varint()
			if err != nil {
				return nil, err
			}
			if field == locationField {
				b = protowire.AppendVarint(protowire.AppendTag(b, field, typ), v)
			}
		case protowire.BytesType:
			n, err := s.varint()
			if err != nil || n > uint64(end-s.pos) {
				return nil, errNotONNX
			}
			next := s.pos + int64(n)
			if (field == nameField || field == externalField) && n < 1<<16 {
				v := make([]byte, n)
				if _, err := io.ReadFull(&s.buf, v); err != nil {
					return nil, errNotONNX
				}
				s.pos = next
				b = protowire.AppendBytes(protowire.AppendTag(b, field, typ), v)
			}
			s.seek(next)
		case protowire.Fixed32Type:
			s.seek(s.pos + 4)
		case protowire.Fixed64Type:
			s.seek(s.pos + 8)
		default:
			return nil, errNotONNX
		}
	}
	t := new(onnxpb.TensorProto)
	if err := proto.Unmarshal(b, t); err != nil {
		return nil, errNotONNX
	}
	return t, nil
}

func (s *scanner) varint() (uint64, error) {
	var v uint64
	for shift := 0; shift < 64; shift += 7 {
		c, err := s.buf.ReadByte()
		if err != nil {
			return 0, errNotONNX
		}
		s.pos++
		if v |= uint64(c&127) << shift; c < 128 {
			return v, nil
		}
	}
	return 0, errNotONNX
}

// seek continues at pos.
func (s *scanner) seek(pos int64) {
	if n := pos - s.pos; n >= 0 && n <= int64(s.buf.Buffered()) {
		_, _ = s.buf.Discard(int(n)) // it is buffered
	} else {
		s.buf.Reset(io.NewSectionReader(s.f, pos, MaxBytes))
	}
	s.pos = pos
}
