package apitest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"ferry/shared/boot/local"
	"ferry/shared/notify"
	"ferry/shared/service"
)

// Listening makes a service record public events.
func Listening(s *service.Settings, _ *local.ServiceOptions) { s.Events = true }

// Event is a recorded event, read leniently.
type Event struct {
	Type, Subject, Source, Text string
	Data                        map[string]any
}

// Events returns the recorded events that are still waiting, oldest first, and
// checks each against the description of the interface.
func (s *Server) Events() []Event {
	s.Helper()
	var stored []notify.RecordedEvent
	for key, text := range s.Partitions(notify.EventPrefix) {
		var e notify.RecordedEvent
		if err := json.Unmarshal([]byte(text), &e); err != nil || e.Key().String() != key {
			s.Fatalf("the item %s is no event: %s, %v", key, text, err)
		}
		stored = append(stored, e)
	}
	slices.SortFunc(stored, func(a, b notify.RecordedEvent) int {
		return strings.Compare(a.ID, b.ID)
	})
	all := make([]Event, len(stored))
	for i, e := range stored {
		if err := s.contract.event(string(e.Type), e.Body); err != nil {
			s.Errorf("%v\n%s", err, e.Body)
		}
		all[i].Text = e.Body
		check(s.TB, "reading an event", json.Unmarshal([]byte(e.Body), &all[i]))
	}
	return all
}

// event returns an error for an event that the description does not allow.
func (c contract) event(name, body string) error {
	hook := c.doc.Webhooks[name]
	if hook == nil || hook.Post == nil {
		return fmt.Errorf("the event %s is not described", name)
	}
	var value any
	if err := json.Unmarshal([]byte(body), &value); err != nil {
		return fmt.Errorf("the event %s cannot be read: %w", name, err)
	}
	schema := hook.Post.RequestBody.Value.Content["application/cloudevents+json"].Schema.Value
	err := schema.VisitJSON(
		value,
		openapi3.EnableJSONSchema2020(),
		openapi3.EnableFormatValidation(),
	)
	if err != nil {
		return fmt.Errorf("the event %s breaks its description: %w", name, err)
	}
	return nil
}
