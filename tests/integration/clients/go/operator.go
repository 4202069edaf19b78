package main

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const hold = "go.example.org/hold"

// Gadget is the custom kind of this operator.
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Size  int32  `json:"size"`
		Color string `json:"color,omitempty"`
	} `json:"spec"`
	Status struct {
		Ready int32  `json:"ready,omitempty"`
		Phase string `json:"phase,omitempty"`
	} `json:"status,omitempty"`
}

// DeepCopyObject makes it an object.
func (g *Gadget) DeepCopyObject() runtime.Object {
	copied := *g
	copied.ObjectMeta = *g.ObjectMeta.DeepCopy()
	return &copied
}

// GadgetList is a list of them.
type GadgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Gadget `json:"items"`
}

// DeepCopyObject makes it an object.
func (l *GadgetList) DeepCopyObject() runtime.Object {
	copied := *l
	copied.ListMeta = *l.ListMeta.DeepCopy()
	copied.Items = make([]Gadget, len(l.Items))
	for index := range l.Items {
		copied.Items[index] = *l.Items[index].DeepCopyObject().(*Gadget)
	}
	return &copied
}

type reconciler struct{ client.Client }

// Reconcile gives a Gadget a Deployment of its size, and leaves a ConfigMap behind when it goes.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var found Gadget
	if err := r.Get(ctx, request.NamespacedName, &found); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !found.DeletionTimestamp.IsZero() {
		farewell := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "farewell-" + found.Name, Namespace: found.Namespace}}
		if err := r.Create(ctx, farewell); err != nil && !apierrors.IsAlreadyExists(err) {
			return ctrl.Result{}, err
		}
		controllerutil.RemoveFinalizer(&found, hold)
		return ctrl.Result{}, r.Update(ctx, &found)
	}
	if controllerutil.AddFinalizer(&found, hold) {
		return ctrl.Result{}, r.Update(ctx, &found)
	}
	wanted := deployment(found.Name, 0)
	wanted.Namespace = found.Namespace
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, wanted, func() error {
		wanted.Spec.Replicas = pointer(found.Spec.Size)
		return controllerutil.SetControllerReference(&found, wanted, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	var same GadgetList
	if err := r.List(ctx, &same, client.InNamespace(found.Namespace), client.MatchingFields{"color": found.Spec.Color}); err != nil {
		return ctrl.Result{}, err
	}
	before := found.DeepCopyObject().(*Gadget)
	found.Status.Ready, found.Status.Phase = *wanted.Spec.Replicas, "made"
	return ctrl.Result{}, r.Status().Patch(ctx, &found, client.MergeFrom(before))
}

func anOperatorOnControllerRuntime(w *world) {
	group := w.namespace + ".example.org"
	define(w, group)
	version := schema.GroupVersion{Group: group, Version: "v1"}
	known := runtime.NewScheme()
	must(clientgoscheme.AddToScheme(known))
	known.AddKnownTypes(version, &Gadget{}, &GadgetList{})
	metav1.AddToGroupVersion(known, version)
	ctrl.SetLogger(klog.Background())

	manager, err := ctrl.NewManager(w.config, ctrl.Options{
		Scheme:                        known,
		Metrics:                       server.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "gadgets",
		LeaderElectionNamespace:       w.namespace,
		LeaderElectionReleaseOnCancel: true,
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{w.namespace: {}}},
	})
	must(err)
	must(manager.GetFieldIndexer().IndexField(w.ctx, &Gadget{}, "color", func(obj client.Object) []string {
		return []string{obj.(*Gadget).Spec.Color}
	}))
	must(ctrl.NewControllerManagedBy(manager).For(&Gadget{}).Owns(&appsv1.Deployment{}).Complete(&reconciler{manager.GetClient()}))
	ctx, stop := context.WithCancel(w.ctx)
	ended := make(chan error)
	go func() { ended <- manager.Start(ctx) }()

	direct, err := client.New(w.config, client.Options{Scheme: known})
	must(err)
	key := client.ObjectKey{Namespace: w.namespace, Name: "one"}
	wanted := &Gadget{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace}}
	wanted.Spec.Size = 3
	must(direct.Create(ctx, wanted))
	is := func(size int32) func() bool {
		return func() bool {
			var found Gadget
			var made appsv1.Deployment
			return direct.Get(ctx, key, &found) == nil && direct.Get(ctx, key, &made) == nil &&
				found.Status.Ready == size && *made.Spec.Replicas == size
		}
	}
	until(w.ctx, "the Deployment is there", is(3))
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"size":5}}`))
	must(direct.Patch(ctx, wanted, patch))
	until(w.ctx, "the Deployment follows", is(5))
	must(direct.Delete(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: w.namespace}}))
	until(w.ctx, "the Deployment is back", is(5))
	must(direct.Delete(ctx, wanted))
	until(w.ctx, "the Gadget is gone, with its Deployment", func() bool {
		return apierrors.IsNotFound(direct.Get(ctx, key, &Gadget{})) && apierrors.IsNotFound(direct.Get(ctx, key, &appsv1.Deployment{}))
	})
	must(direct.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "farewell-one"}, &corev1.ConfigMap{}))
	stop()
	select {
	case err := <-ended:
		must(err)
	case <-time.After(20 * time.Second):
		panic("the manager does not end")
	}
}
