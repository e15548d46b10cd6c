package local

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"ferry/shared/fault"
	"ferry/shared/notify"
	"ferry/shared/service"
)

// scrapeTime is how long the answer to one request for metrics may take.
const scrapeTime = 10 * time.Second

// Metrics counts what a service does, for Prometheus. Labels are routes, statuses and
// other short lists: no caller can make new ones. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	log      *slog.Logger
	seconds  *prometheus.HistogramVec
	open     *prometheus.GaugeVec

	requests, received, sent, logins *prometheus.CounterVec
}

// NewMetrics returns Metrics.
func NewMetrics(log *slog.Logger) *Metrics {
	registry := prometheus.NewRegistry()
	registered := promauto.With(registry)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return registered.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		registry: registry,
		log:      log,
		requests: counter(
			"ferry_requests_total",
			"Requests that were answered.",
			"route",
			"status",
		),
		received: counter("ferry_received_bytes_total", "Bytes of requests' bodies.", "route"),
		sent:     counter("ferry_sent_bytes_total", "Bytes of answers' bodies.", "route"),
		seconds: registered.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "ferry_request_duration_seconds",
			Help:    "Time from a request's header to the end of its answer.",
			Buckets: []float64{.005, .025, .1, .25, 1, 2.5, 10, 60, 600, 3600},
		}, []string{"route"}),
		open: registered.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ferry_requests_open",
			Help: "Requests under way, such as uploads.",
		}, []string{"route"}),
		logins: counter("ferry_logins_refused_total", "Refused logins.", "login"),
	}
	for _, login := range []string{"basic", "password", "bearer", "pin", "link"} {
		m.logins.WithLabelValues(login) // so that the first refusal shows as an increase
	}
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// Handler answers with all metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(m.log.Handler(), slog.LevelError),
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: 2,
		Timeout:             scrapeTime,
	})
}

// watch counts the requests to next. routes knows the route of each.
func (m *Metrics) watch(routes *http.ServeMux, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		ctx, caller := fault.WithCaller(r.Context())
		r = r.WithContext(ctx)
		_, route := routes.Handler(r)
		m.open.WithLabelValues(route).Inc()
		defer func() { // also after a panic that aborts an answer
			m.open.WithLabelValues(route).Dec()
			status := cmp.Or(caller.Status, http.StatusOK) // 0 for a browser's preflight
			m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
			m.received.WithLabelValues(route).Add(float64(caller.Received))
			m.sent.WithLabelValues(route).Add(float64(caller.Sent))
			m.seconds.WithLabelValues(route).Observe(time.Since(start).Seconds())
			if caller.Refused(status) {
				m.logins.WithLabelValues(caller.Login).Inc()
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// stored collects what is in the stores: the outbox, open uploads, and the room on the disk.
type stored struct {
	service.Ports
	sender *notify.Sender
}

// Describe implements prometheus.Collector. It says nothing, so that the stores are read
// only when the metrics are asked for.
func (s stored) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (s stored) Collect(out chan<- prometheus.Metric) {
	gauge := func(value float64, err error, name, help string, labels prometheus.Labels) {
		desc := prometheus.NewDesc(name, help, nil, labels)
		if err != nil {
			out <- prometheus.NewInvalidMetric(desc, err)
			return
		}
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value)
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	count, oldest, err := s.outbox(notify.Waiting(ctx, s.Table), notify.GivenUp(ctx, s.Table))
	for _, state := range []notify.State{notify.Queued, notify.Sending, notify.Failed} {
		labels := prometheus.Labels{"state": string(state)}
		gauge(count[state], err, "ferry_outbox_notices",
			"Notices in the outbox, and those that have failed in the last 30 days.", labels)
		gauge(
			oldest[state],
			err,
			"ferry_outbox_oldest_seconds",
			"Age of the oldest of these notices, 0 if there is none.",
			labels,
		)
	}
	count, oldest, err = s.outbox(s.sender.Events(ctx))
	gauge(
		count[notify.Queued],
		err,
		"ferry_outbox_events",
		"Events that wait for webhooks.",
		nil,
	)
	gauge(
		oldest[notify.Queued],
		err,
		"ferry_outbox_events_oldest_seconds",
		"Age of the oldest of them, 0 if there is none.",
		nil,
	)
	open, err := s.Medium.OpenSessions()
	gauge(
		float64(open),
		err,
		"ferry_upload_sessions_open",
		"Upload sessions that were neither completed nor ended; an expired one counts until it is swept.",
		nil,
	)
	free, err := s.Medium.Free()
	gauge(
		float64(free),
		err,
		"ferry_disk_free_bytes",
		"Room for users' files on the disk.",
		nil,
	)
}

// outbox counts notices by state, and returns the age of the oldest in each, in seconds.
func (s stored) outbox(all ...iter.Seq2[notify.Notice, error]) (n, age map[notify.State]float64, err error) {
	n, age = map[notify.State]float64{}, map[notify.State]float64{}
	for _, some := range all {
		for notice, err := range some {
			if err != nil {
				return nil, nil, err
			}
			n[notice.State()]++
			if notice.Created > 0 {
				age[notice.State()] = max(
					age[notice.State()],
					s.Now().Sub(time.Unix(notice.Created, 0)).Seconds(),
				)
			}
		}
	}
	return n, age, nil
}
