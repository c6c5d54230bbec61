package dataset

import (
	"encoding/binary"
	"hash/crc32"
	"image/color"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestFolderOrientation checks that photographs are rotated by their EXIF orientation before cropping, unless
// orientation is sensor.
func TestFolderOrientation(t *testing.T) {
	const header = 8 + 25 // the signature and IHDR
	file := dot(4, 2, color.White)
	chunk :=
		"eXIfMM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00"
	length := binary.BigEndian.AppendUint32(nil, uint32(len(chunk)-4))
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(chunk)))
	p := defaults(folderOf(t,
		map[string]string{"a/turned.png": file[:header] + string(length) + chunk + string(sum) +
			file[header:]}))
	for orientation, want := range map[string][]int{"exif": {3, 4, 2}, "sensor": {3, 2, 4}} {
		p.Orientation = orientation
		r := stagetest.Run(t, Folder, p, nil)
		m, err := stages.DecodeTensor(r.Payloads["images"][0])
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, m.Shape); d != "" {
			t.Errorf("%s: %s", orientation, d)
		}
	}
}
