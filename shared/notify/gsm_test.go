package notify_test

import (
	"strings"
	"testing"

	"ferry/shared/notify"
)

func TestGSMReplacesWhatItCan(t *testing.T) {
	t.Parallel()
	turns(t, notify.GSM, []textTest[string]{
		{"what the alphabet has stays", "Perché già? Ñandú [1] 5 €", "Perché già? Ñandu [1] 5 €"},
		{"quotation marks become plain", "‘a’ “b” „c“ «d» ‹e›", `'a' "b" "c" "d" 'e'`},
		{"dashes, points and spaces too", "a–b—c… d\u00a0e\u202ff", "a-b-c... d e f"},
		{"accents that it lacks are left out", "información, être, naïve, Łódź", "informacion, etre, naive, Łodz"},
		{"so are those that are separate characters", "e\u0302tre e\u0301te\u0301", "etre été"},
		{"ligatures are spelt", "cœur ŒUVRE", "coeur OEUVRE"},
		{"other scripts and emoji stay", "报告 🚢 отчёт", "报告 🚢 отчёт"},
	})
}

func TestSegments(t *testing.T) {
	t.Parallel()
	turns(t, notify.Segments, []textTest[int]{
		{"nothing is no message", "", 0},
		{"160 characters of the GSM alphabet are one", strings.Repeat("à", 160), 1},
		{"161 are two", strings.Repeat("a", 161), 2},
		{"306 are two", strings.Repeat("a", 306), 2},
		{"307 are three", strings.Repeat("a", 307), 3},
		{"brackets take two places", strings.Repeat("[", 80), 1},
		{"81 brackets are two", strings.Repeat("[", 81), 2},
		{"a bracket is not divided between two messages", strings.Repeat("[", 76*2+1), 3},
		{"one other character reduces the most to 70", strings.Repeat("a", 69) + "ç", 1},
		{"71 with it are two", strings.Repeat("a", 70) + "ç", 2},
		{"an emoji takes two places", strings.Repeat("🚢", 35), 1},
		{"36 of them are two", strings.Repeat("🚢", 36), 2},
		{"an emoji is not divided between two messages", strings.Repeat("🚢", 33*2+1), 3},
	})
}
