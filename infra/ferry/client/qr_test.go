package client

import (
	"bytes"
	"strings"
	"testing"

	"ferry/shared/boot/expect"
)

// TestAQRCodeIsSquareWithItsMarks reads a code back from what is printed.
func TestAQRCodeIsSquareWithItsMarks(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	expect.NoErr(
		t,
		printQR(
			&out,
			"https://files.example.com/v1/download/file?lang=en&k=Ma4ENAkpY3tyFgOuhHjoOpy85nGv4MjCU6imn9bCj1Q",
		),
	)
	var rows [][]bool
	for line := range strings.Lines(strings.TrimSuffix(out.String(), "\n")) {
		var upper, lower []bool
		for _, r := range strings.TrimSuffix(line, "\n") {
			upper, lower = append(upper, r == '█' || r == '▀'), append(lower, r == '█' || r == '▄')
		}
		rows = append(rows, upper, lower)
	}
	size := len(rows[0]) - 2*quiet
	if len(rows) != len(rows[0])+1 || size%4 != 1 {
		t.Fatalf("%d rows of %d", len(rows), len(rows[0]))
	}
	for _, at := range [][2]int{{0, 0}, {0, size - 7}, {size - 7, 0}} {
		for y := -1; y < 8; y++ {
			for x := -1; x < 8; x++ {
				edge := max(y-3, 3-y, x-3, 3-x) // the distance from the middle of the mark
				if rows[quiet+at[0]+y][quiet+at[1]+x] != (edge != 2 && edge != 4) {
					t.Fatalf("the mark at %v is broken in row %d, column %d:\n%s", at, y, x, out.String())
				}
			}
		}
	}
}
