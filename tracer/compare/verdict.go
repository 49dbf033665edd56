package compare

import (
	"fmt"
	"math"
	"strings"

	"memtrace/tracer/recording"
)

// What a change must come to before it is called one.
const (
	smallestChange = 0.05 // of the value before
	largeChange    = 0.10 // for a question's answer to be better or worse
)

// question is one that people compare recordings for.
type question struct {
	name string
	// rows are the rows that answer it, the best first; the first one that is there counts.
	rows []string
	// called is what the row is called in a sentence.
	called string
}

// questions in the order of the summary. In all of them, less is better.
var questions = []question{
	{"retention", []string{"free, resident"}, "retention"},
	{"memory", []string{"committed", "resident"}, "committed memory"},
	{"live", []string{"live"}, "live memory"},
	{"churn", []string{"allocated a round", "allocated"}, "allocation"},
	{"locks", []string{"lock waits"}, "lock waits"},
	{"switches", []string{"voluntary switches"}, "voluntary switches"},
	{"cpu", []string{"CPU time"}, "CPU time"},
}

// verdicts answers each question that the rows can answer.
func verdicts(rows []recording.Change) []recording.Verdict {
	all := []recording.Verdict{}
	for _, q := range questions {
		for _, name := range q.rows {
			if row, found := find(rows, name); found {
				called := q.called
				if name == "allocated a round" {
					called = "allocation a round"
				}
				answer := judge(row)
				all = append(all, recording.Verdict{Question: q.name, Answer: answer, Summary: called + " " + movement(row, answer)})
				break
			}
		}
	}
	return addMeaning(all, rows)
}

func find(rows []recording.Change, name string) (recording.Change, bool) {
	for _, row := range rows {
		if row.Name == name {
			return row, true
		}
	}
	return recording.Change{}, false
}

// judge tells which way a row went.
func judge(row recording.Change) recording.Judgment {
	relative := math.Inf(1)
	if row.Before != 0 {
		relative = math.Abs(row.Difference) / math.Abs(row.Before)
	}
	switch {
	case relative < smallestChange:
		return recording.Same
	case (row.WithinNoise || row.Noise == 0) && relative < largeChange:
		return recording.Same
	case row.WithinNoise || relative < largeChange:
		return recording.Unclear
	case row.Difference < 0:
		return recording.Better
	}
	return recording.Worse
}

// movement says how a row moved: "fell 58 %", "rose 4.0 times", "unchanged".
func movement(row recording.Change, answer recording.Judgment) string {
	switch {
	case answer == recording.Same:
		return "unchanged"
	case row.Before == 0:
		return "rose from nothing"
	case row.After == 0:
		return "fell to nothing"
	}
	text := ""
	switch percent := (row.Ratio - 1) * 100; {
	case row.Ratio >= 2:
		text = fmt.Sprintf("rose to %.3g times", row.Ratio)
	case percent > 0:
		text = fmt.Sprintf("rose %.0f %%", percent)
	default:
		text = fmt.Sprintf("fell %.0f %%", -percent)
	}
	if row.WithinNoise {
		text += " (within the noise)"
	}
	return text
}

// addMeaning says of the questions that stand together what their answers mean.
func addMeaning(all []recording.Verdict, rows []recording.Change) []recording.Verdict {
	answers := map[string]recording.Judgment{}
	for _, v := range all {
		answers[v.Question] = v.Answer
	}
	arenas, known := find(rows, "arenas")
	fewer := known && arenas.After < arenas.Before
	for i := range all {
		v := &all[i]
		switch {
		case v.Question == "retention" && v.Answer == recording.Better && answers["live"] == recording.Same && fewer:
			v.Summary += fmt.Sprintf(", live unchanged, arenas %.0f → %.0f: the cap works", arenas.Before, arenas.After)
		case v.Question == "retention" && v.Answer == recording.Better && answers["live"] == recording.Same:
			v.Summary += ", live unchanged: the allocator holds less"
		case v.Question == "retention" && v.Answer == recording.Worse && answers["live"] == recording.Same:
			v.Summary += ", live unchanged: the allocator holds more"
		case v.Question == "memory" && v.Answer == recording.Better && answers["live"] == recording.Same && answers["retention"] == "":
			v.Summary += ", live unchanged"
		case v.Question == "locks" && v.Answer == recording.Worse:
			v.Summary += ": it costs"
		}
	}
	return all
}

// summary joins the answers into one sentence: those that moved, then those that did not.
func summary(all []recording.Verdict) string {
	var moved, same []string
	for _, v := range all {
		if v.Answer == recording.Same {
			name, _ := strings.CutSuffix(v.Summary, " unchanged")
			same = append(same, name)
			continue
		}
		moved = append(moved, v.Summary)
	}
	switch {
	case len(all) == 0:
		return "the two have nothing in common that could be compared"
	case len(moved) == 0:
		return "nothing changed: " + strings.Join(same, ", ")
	case len(same) == 0:
		return strings.Join(moved, "; ")
	}
	return strings.Join(moved, "; ") + "; unchanged: " + strings.Join(same, ", ")
}
