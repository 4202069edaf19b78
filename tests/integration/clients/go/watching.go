package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	watchtools "k8s.io/client-go/tools/watch"
)

func informersUseWatchList(w *world) {
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	for index := range 20 {
		_, err := maps.Create(w.ctx, configMap(fmt.Sprintf("c%02d", index), nil), metav1.CreateOptions{})
		must(err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(w.typed, 0, informers.WithNamespace(w.namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = "w" }))
	informer := factory.Core().V1().ConfigMaps()
	events := make(chan string, 100)
	_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, first bool) { events <- fmt.Sprintf("add %s %t", obj.(*corev1.ConfigMap).Name, first) },
		UpdateFunc: func(_, obj any) { events <- "update " + obj.(*corev1.ConfigMap).Name },
		DeleteFunc: func(obj any) { events <- "delete " + obj.(*corev1.ConfigMap).Name },
	})
	must(err)
	for _, of := range []cache.SharedIndexInformer{
		factory.Apps().V1().Deployments().Informer(), factory.Core().V1().Pods().Informer(),
		factory.Core().V1().Secrets().Informer(), factory.Coordination().V1().Leases().Informer(),
		factory.Core().V1().Events().Informer(), factory.Batch().V1().Jobs().Informer(),
	} {
		must(of.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { events <- "error " + err.Error() }))
	}
	factory.Start(w.ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(w.ctx.Done()) {
		expect(synced, "%v has not synced", kind)
	}
	first := map[string]bool{}
	for range 20 {
		first[<-events] = true
	}
	for index := range 20 {
		expect(first[fmt.Sprintf("add c%02d true", index)], "the first list told %v", first)
	}
	found, err := maps.Get(w.ctx, "c03", metav1.GetOptions{})
	must(err)
	found.Data = map[string]string{"x": "1"}
	_, err = maps.Update(w.ctx, found, metav1.UpdateOptions{})
	must(err)
	must(maps.Delete(w.ctx, "c04", metav1.DeleteOptions{}))
	found.Labels, found.ResourceVersion = nil, ""
	_, err = maps.Update(w.ctx, found, metav1.UpdateOptions{}) // leaves the selection
	must(err)
	_, err = maps.Create(w.ctx, configMap("later", nil), metav1.CreateOptions{})
	must(err)
	for _, expected := range []string{"update c03", "delete c04", "delete c03", "add later false"} {
		select {
		case told := <-events:
			expect(told == expected, "%q instead of %q", told, expected)
		case <-w.ctx.Done():
			panic("nothing told instead of " + expected)
		}
	}
	cached, err := informer.Lister().ConfigMaps(w.namespace).Get("later")
	must(err)
	expect(cached.UID != "", "the cache holds %v", cached)
}

func aWatchResumes(w *world) {
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	first, err := maps.Create(w.ctx, configMap("a", nil), metav1.CreateOptions{})
	must(err)
	watcher, err := watchtools.NewRetryWatcherWithContext(w.ctx, first.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.TimeoutSeconds = pointer(int64(1)) // it must come back again and again
			options.LabelSelector = "w"
			return maps.Watch(ctx, options)
		},
	})
	must(err)
	defer watcher.Stop()
	for index := range 3 {
		name := fmt.Sprintf("b%d", index)
		_, err = maps.Create(w.ctx, configMap(name, nil), metav1.CreateOptions{})
		must(err)
		event := <-watcher.ResultChan()
		expect(event.Type == watch.Added && event.Object.(*corev1.ConfigMap).Name == name, "%v", event)
		time.Sleep(700 * time.Millisecond)
	}
}

func define(w *world, group string) {
	spoken := rest.CopyConfig(w.config)
	spoken.ContentType = protobuf
	extensions, err := apiextensions.NewForConfig(spoken)
	must(err)
	number, text := apiextensionsv1.JSONSchemaProps{Type: "integer"}, apiextensionsv1.JSONSchemaProps{Type: "string"}
	sized := number
	sized.Minimum, sized.Maximum = pointer(0.0), pointer(10.0)
	colored := text
	colored.Default = &apiextensionsv1.JSON{Raw: []byte(`"green"`)}
	_, err = extensions.ApiextensionsV1().CustomResourceDefinitions().Create(w.ctx, &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "gadgets." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Kind: "Gadget", ShortNames: []string{"gd"}},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"size": sized, "color": colored},
							XValidations: apiextensionsv1.ValidationRules{{Rule: "self.size != 7", Message: "seven is taken"}}},
						"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"ready": number, "phase": text}},
					},
				}},
			}},
		},
	}, metav1.CreateOptions{})
	must(err)
	until(w.ctx, "the definition is established", func() bool {
		found, err := extensions.ApiextensionsV1().CustomResourceDefinitions().Get(w.ctx, "gadgets."+group, metav1.GetOptions{})
		must(err)
		for _, condition := range found.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true
			}
		}
		return false
	})
	untyped := dynamic.NewForConfigOrDie(w.config)
	until(w.ctx, "the kind is served", func() bool {
		_, err := untyped.Resource(gadgetsOf(group)).List(w.ctx, metav1.ListOptions{})
		return err == nil
	})
}

func gadgetsOf(group string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: "v1", Resource: "gadgets"}
}

func gadget(group, name string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "Gadget",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"size": size},
	}}
}

func definitionsDynamicAndMetadata(w *world) {
	group := w.namespace + ".example.org"
	define(w, group)
	kind := gadgetsOf(group)
	objects := dynamic.NewForConfigOrDie(w.config).Resource(kind).Namespace(w.namespace)
	made, err := objects.Create(w.ctx, gadget(group, "g", 2), metav1.CreateOptions{})
	must(err)
	color, _, _ := unstructured.NestedString(made.Object, "spec", "color")
	expect(color == "green", "no default: %v", made)
	for _, wrong := range []int64{7, 11} {
		_, err = objects.Create(w.ctx, gadget(group, "h", wrong), metav1.CreateOptions{})
		expect(apierrors.IsInvalid(err), "%d was accepted: %v", wrong, err)
	}
	dynamicFactory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(
		dynamic.NewForConfigOrDie(w.config), 0, w.namespace, nil)
	metadataFactory := metadatainformer.NewFilteredSharedInformerFactory(
		metadata.NewForConfigOrDie(w.config), 0, w.namespace, nil)
	lister, partial := dynamicFactory.ForResource(kind), metadataFactory.ForResource(kind)
	lister.Informer()
	partial.Informer()
	dynamicFactory.Start(w.ctx.Done())
	metadataFactory.Start(w.ctx.Done())
	expect(dynamicFactory.WaitForCacheSync(w.ctx.Done())[kind], "dynamic informer has not synced")
	expect(metadataFactory.WaitForCacheSync(w.ctx.Done())[kind], "metadata informer has not synced")
	applied, err := objects.Apply(w.ctx, "g", gadget(group, "g", 4), metav1.ApplyOptions{FieldManager: "go", Force: true})
	must(err)
	until(w.ctx, "both informers have seen it", func() bool {
		whole, err := lister.Lister().ByNamespace(w.namespace).Get("g")
		must(err)
		part, err := partial.Lister().ByNamespace(w.namespace).Get("g")
		must(err)
		return whole.(*unstructured.Unstructured).GetResourceVersion() == applied.GetResourceVersion() &&
			part.(*metav1.PartialObjectMetadata).ResourceVersion == applied.GetResourceVersion()
	})
	applied.Object["status"] = map[string]any{"ready": int64(4)}
	_, err = objects.UpdateStatus(w.ctx, applied, metav1.UpdateOptions{})
	must(err)
	w.left["gadget"] = map[string]any{"group": group, "namespace": w.namespace, "name": "g", "size": 4}
}

func discoveryAndOpenAPI(w *world) {
	client := discovery.NewDiscoveryClientForConfigOrDie(w.config)
	groups, resources, err := client.ServerGroupsAndResources()
	must(err)
	expect(len(groups) > 15 && len(resources) > 20, "%d groups, %d versions", len(groups), len(resources))
	mapped, err := restmapper.GetAPIGroupResources(client)
	must(err)
	mapping, err := restmapper.NewDiscoveryRESTMapper(mapped).RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"})
	must(err)
	expect(mapping.Resource.Version == "v1" && mapping.Resource.Resource == "deployments", "%v", mapping.Resource)
	paths, err := client.OpenAPIV3().Paths()
	must(err)
	document, err := paths["apis/apps/v1"].Schema("application/json")
	must(err)
	expect(len(document) > 10_000, "the document is %d bytes", len(document))
	version, err := client.ServerVersion()
	must(err)
	expect(version.Major == "1" && version.GoVersion != "", "%v", version)
}

func leadersAreElected(w *world) {
	typed := kubernetes.NewForConfigOrDie(w.config)
	leading := make(chan string, 4)
	contend := func(identity string) context.CancelFunc {
		ctx, cancel := context.WithCancel(w.ctx)
		lock, err := resourcelock.New(resourcelock.LeasesResourceLock, w.namespace, "leader",
			typed.CoreV1(), typed.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: identity})
		must(err)
		go leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, ReleaseOnCancel: true, Name: identity,
			LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leading <- identity },
				OnStoppedLeading: func() {},
			},
		})
		return cancel
	}
	release := contend("one")
	expect(<-leading == "one", "somebody else leads")
	defer contend("two")()
	release()
	expect(<-leading == "two", "nobody took over")
	lease, err := typed.CoordinationV1().Leases(w.namespace).Get(w.ctx, "leader", metav1.GetOptions{})
	must(err)
	expect(*lease.Spec.HolderIdentity == "two" && *lease.Spec.LeaseTransitions >= 1, "%v", lease.Spec)
}
