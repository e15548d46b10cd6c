package notify_test

import (
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
