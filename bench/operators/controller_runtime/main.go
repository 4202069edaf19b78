// The operator in controller-runtime.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

type ThingSpec struct {
	A    int    `json:"a"`
	B    int    `json:"b"`
	Text string `json:"text"`
}

type ThingStatus struct {
	Seen int `json:"seen,omitempty"`
}

type Thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ThingSpec   `json:"spec"`
	Status            ThingStatus `json:"status,omitempty"`
}

type ThingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Thing `json:"items"`
}

func (in *Thing) DeepCopyInto(out *Thing) {
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
}

func (in *Thing) DeepCopyObject() runtime.Object {
	out := new(Thing)
	in.DeepCopyInto(out)
	return out
}

func (in *ThingList) DeepCopyObject() runtime.Object {
	out := &ThingList{TypeMeta: in.TypeMeta, Items: make([]Thing, len(in.Items))}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	for place := range in.Items {
		in.Items[place].DeepCopyInto(&out.Items[place])
	}
	return out
}

var (
	count, _ = strconv.Atoi(os.Getenv("BENCH_COUNT"))
	epoch, _ = strconv.Atoi(os.Getenv("BENCH_EPOCH"))
	status   = os.Getenv("BENCH_STATUS") == "1"
	lock     sync.Mutex
	names    = map[string]bool{}
	seen     = map[int]float64{}
)

// now is the clock that Python's time.monotonic() shows.
func now() float64 {
	var moment unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &moment); err != nil {
		panic(err)
	}
	return float64(moment.Sec) + float64(moment.Nsec)/1e9
}

func say(what string) { fmt.Printf("%s %f\n", what, now()) }

func note(name string, number int) {
	lock.Lock()
	defer lock.Unlock()
	if _, known := seen[number]; !known {
		seen[number] = now()
	}
	if len(names) < count {
		names[name] = true
		if len(names) == count {
			say("first-pass")
		}
	}
}

type reconciler struct{ client client.Client }

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var thing Thing
	if err := r.client.Get(ctx, request.NamespacedName, &thing); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	note(thing.Name, thing.Spec.B)
	if status && thing.Status.Seen != thing.Spec.B+epoch {
		thing.Status.Seen = thing.Spec.B + epoch
		return ctrl.Result{}, r.client.Status().Update(ctx, &thing)
	}
	return ctrl.Result{}, nil
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func config() *rest.Config {
	found := ctrl.GetConfigOrDie()
	found.QPS = -1
	return found
}

func main() {
	say("started")
	ctrl.SetLogger(klog.Background())
	scheme := runtime.NewScheme()
	version := schema.GroupVersion{Group: "bench.example.org", Version: "v1"}
	scheme.AddKnownTypes(version, &Thing{}, &ThingList{})
	metav1.AddToGroupVersion(scheme, version)
	mgr, err := ctrl.NewManager(config(), ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	must(err)
	must(ctrl.NewControllerManagedBy(mgr).For(&Thing{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 10}).
		Complete(&reconciler{mgr.GetClient()}))
	must(mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		informer, err := mgr.GetCache().GetInformer(ctx, &Thing{})
		if err == nil && cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			say("synced")
		}
		return err
	})))
	must(mgr.Start(ctrl.SetupSignalHandler()))
	lock.Lock()
	defer lock.Unlock()
	text, err := json.Marshal(seen)
	must(err)
	must(os.WriteFile(os.Getenv("BENCH_OUT"), text, 0o600))
}
