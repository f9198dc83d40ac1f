//go:build env

package backup_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// TestColumns: what kubectl get prints of each kind, and with --output=wide, as the API server
// tells it.
func TestColumns(t *testing.T) {
	s := newStage(t)
	ago := func(hours time.Duration) *metav1.Time {
		return new(metav1.NewTime(time.Now().Add(-hours * time.Hour).Truncate(time.Second)))
	}
	condition := func(reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: api.ConditionReady, Status: metav1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: metav1.Now()}}
	}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: s.ns} }
	of := api.ClusterReference{Name: "db"}
	b := &api.EtcdBackup{ObjectMeta: meta("nightly"), Spec: api.EtcdBackupSpec{ClusterRef: of}}
	schedule := &api.EtcdBackupSchedule{ObjectMeta: meta("hourly"), Spec: api.EtcdBackupScheduleSpec{ClusterRef: of, Schedule: "0 * * * *"}}
	e := &api.EtcdRestore{ObjectMeta: meta("back"), Spec: api.EtcdRestoreSpec{ClusterRef: of}}
	cases := map[string]struct {
		object   client.Object
		status   func() // that is written
		kind     string // in a URL
		new      map[string]string
		want     map[string]string
		wideOnly []string
	}{
		"EtcdBackup": {
			object: b, kind: "etcdbackups",
			status: func() {
				b.Status = api.EtcdBackupStatus{
					Revision: 42, TakenAt: ago(3), StoredSize: 1024, Location: "s3://etcd-backups/nightly.db.zst", Conditions: condition(api.ReasonVerified, "stored, restored and compared"),
				}
			},
			new: map[string]string{"Name": "nightly", "Cluster": "db"},
			want: map[string]string{
				"Name": "nightly", "Cluster": "db", "Ready": "True", "Reason": "Verified", "Revision": "42", "Taken": "3h",
				"Size": "1024", "Location": "s3://etcd-backups/nightly.db.zst", "Status": "stored, restored and compared",
			},
			wideOnly: []string{"Size", "Location", "Status"},
		},
		"EtcdBackupSchedule": {
			object: schedule, kind: "etcdbackupschedules",
			status: func() {
				schedule.Status = api.EtcdBackupScheduleStatus{Active: "hourly-1", LastSuccessfulTime: ago(4), Conditions: condition(api.ReasonScheduled, "an EtcdBackup is made when it is time")}
			},
			new: map[string]string{"Name": "hourly", "Cluster": "db", "Schedule": "0 * * * *"},
			want: map[string]string{
				"Name": "hourly", "Cluster": "db", "Schedule": "0 * * * *", "Ready": "True", "Active": "hourly-1", "Last-Good": "4h",
				"Status": "an EtcdBackup is made when it is time",
			},
			wideOnly: []string{"Status"},
		},
		"EtcdRestore": {
			object: e, kind: "etcdrestores",
			status: func() {
				e.Status = api.EtcdRestoreStatus{
					Conditions: condition(api.ReasonRestored, "the cluster was restored"),
					Restored:   &api.RestoredSnapshot{Name: "monday", SHA256: strings.Repeat("5a", 32), Revision: 42, TakenAt: ago(5)},
					Plan: &api.RestorePlan{
						PlannedAt: metav1.Now(), From: api.RestoredSnapshot{Name: "monday", SHA256: strings.Repeat("5a", 32)}, Lost: "writes after revision 42",
						FormerVolumes: api.RetentionRetain, ClosedService: "db-client",
					},
				}
			},
			new: map[string]string{"Name": "back", "Cluster": "db"},
			want: map[string]string{
				"Name": "back", "Cluster": "db", "Ready": "True", "Reason": "Restored", "Snapshot": "monday", "Revision": "42", "Taken": "5h",
				"Lost": "writes after revision 42", "Status": "the cluster was restored",
			},
			wideOnly: []string{"Revision", "Lost", "Status"},
		},
	}
	for name, tc := range cases {
		if err := s.Create(s.Context(), tc.object); err != nil {
			t.Fatal(err)
		}
		got, _ := s.row(tc.kind, tc.object.GetName())
		delete(got, "Age")
		if diff := cmp.Diff(tc.new, got); diff != "" {
			t.Errorf("%s that is new: -want +got:\n%s", name, diff)
		}
		tc.status()
		if err := s.Status().Update(s.Context(), tc.object); err != nil {
			t.Fatal(err)
		}
		got, wide := s.row(tc.kind, tc.object.GetName())
		if got["Age"] == "" {
			t.Errorf("%s has no age", name)
		}
		delete(got, "Age")
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
		if diff := cmp.Diff(tc.wideOnly, wide); diff != "" {
			t.Errorf("%s with --output=wide alone: -want +got:\n%s", name, diff)
		}
	}
}

// row is what is printed of an object, by column, but for what is empty; and the columns that are
// printed with --output=wide alone.
func (s *stage) row(kind, name string) (cells map[string]string, wide []string) {
	s.Helper()
	httpClient, err := rest.HTTPClientFor(apiServer)
	if err != nil {
		s.Fatal(err)
	}
	url := fmt.Sprintf("%s/apis/%s/namespaces/%s/%s/%s", strings.TrimSuffix(apiServer.Host, "/"), api.SchemeGroupVersion, s.ns, kind, name)
	request, err := http.NewRequestWithContext(s.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		s.Fatal(err)
	}
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	response, err := httpClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // it was read
	raw, err := io.ReadAll(response.Body)
	table := &metav1.Table{}
	if err != nil || json.Unmarshal(raw, table) != nil || len(table.Rows) != 1 {
		s.Fatalf("%s: %v: %s", url, err, raw)
	}
	cells = map[string]string{}
	for n, column := range table.ColumnDefinitions {
		if cell := table.Rows[0].Cells[n]; cell != nil {
			cells[column.Name] = fmt.Sprint(cell)
		}
		if column.Priority > 0 {
			wide = append(wide, column.Name)
		}
	}
	return cells, wide
}
