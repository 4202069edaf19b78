package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	applyapps "k8s.io/client-go/applyconfigurations/apps/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"
)

func template(name string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name:  "main",
			Image: "registry.test/main:1",
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 80}},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")},
			},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
				HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString("http")},
			}},
		}}},
	}
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: appsv1.DeploymentSpec{
			Replicas: pointer(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: template(name),
		},
	}
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"w": ""}},
		Data:       data,
	}
}

func typedObjectsInProtobuf(w *world) {
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	wanted := configMap("a", map[string]string{"k": "v", "unicode": "äöü€\x00"})
	wanted.BinaryData = map[string][]byte{"b": {0, 255, 1}}
	made, err := maps.Create(w.ctx, wanted, metav1.CreateOptions{FieldManager: "go"})
	must(err)
	expect(made.UID != "" && made.BinaryData["b"][1] == 255, "not as it was sent: %v", made)
	expect(made.Data["unicode"] == "äöü€\x00", "not as it was sent: %q", made.Data)
	expect(made.ManagedFields[0].Manager == "go", "managed by %v", made.ManagedFields)
	read, err := maps.Get(w.ctx, "a", metav1.GetOptions{})
	must(err)
	expect(read.ResourceVersion == made.ResourceVersion, "versions differ")
	read.Data["more"] = "w"
	_, err = maps.Update(w.ctx, read, metav1.UpdateOptions{})
	must(err)
	_, err = maps.Update(w.ctx, made, metav1.UpdateOptions{})
	expect(apierrors.IsConflict(err), "a conflict was expected: %v", err)
	_, err = maps.Create(w.ctx, configMap("a", nil), metav1.CreateOptions{})
	expect(apierrors.IsAlreadyExists(err), "a second one was accepted: %v", err)
	wrong := types.UID("another")
	err = maps.Delete(w.ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})
	expect(apierrors.IsConflict(err), "the precondition was not heard: %v", err)
	foreground := metav1.DeletePropagationBackground
	must(maps.Delete(w.ctx, "a", metav1.DeleteOptions{PropagationPolicy: &foreground, GracePeriodSeconds: pointer(int64(0))}))
	_, err = maps.Get(w.ctx, "a", metav1.GetOptions{})
	expect(apierrors.IsNotFound(err), "it is still there: %v", err)
	_, err = maps.Create(w.ctx, configMap("Wrong_Name", nil), metav1.CreateOptions{})
	expect(apierrors.IsInvalid(err), "a wrong name was accepted: %v", err)
	for _, name := range []string{"b", "c"} {
		_, err = maps.Create(w.ctx, configMap(name, nil), metav1.CreateOptions{})
		must(err)
	}
	must(maps.DeleteCollection(w.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "w"}))
	list, err := maps.List(w.ctx, metav1.ListOptions{LabelSelector: "w"})
	must(err)
	expect(len(list.Items) == 0, "%d are still there", len(list.Items))
}

func everyKindOfAManifest(w *world) {
	typed, ctx, space, options := w.typed, w.ctx, w.namespace, metav1.CreateOptions{}
	named := metav1.ObjectMeta{Name: "x", Labels: map[string]string{"made-by": "go"}}
	now := metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC))
	one := func(err error) { must(err) }
	_, err := typed.CoreV1().Services(space).Create(ctx, &corev1.Service{ObjectMeta: named, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "x"},
		Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
	}}, options)
	one(err)
	_, err = typed.CoreV1().Secrets(space).Create(ctx, &corev1.Secret{ObjectMeta: named, StringData: map[string]string{"p": "q"}}, options)
	one(err)
	_, err = typed.CoreV1().ServiceAccounts(space).Create(ctx, &corev1.ServiceAccount{ObjectMeta: named}, options)
	one(err)
	_, err = typed.CoreV1().PersistentVolumeClaims(space).Create(ctx, &corev1.PersistentVolumeClaim{ObjectMeta: named,
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		}}, options)
	one(err)
	_, err = typed.AppsV1().StatefulSets(space).Create(ctx, &appsv1.StatefulSet{ObjectMeta: named, Spec: appsv1.StatefulSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}, Template: template("x"), ServiceName: "x",
	}}, options)
	one(err)
	_, err = typed.AppsV1().DaemonSets(space).Create(ctx, &appsv1.DaemonSet{ObjectMeta: named, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}, Template: template("x"),
	}}, options)
	one(err)
	job := batchv1.JobSpec{Template: template("x")}
	job.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err = typed.BatchV1().Jobs(space).Create(ctx, &batchv1.Job{ObjectMeta: named, Spec: job}, options)
	one(err)
	_, err = typed.BatchV1().CronJobs(space).Create(ctx, &batchv1.CronJob{ObjectMeta: named, Spec: batchv1.CronJobSpec{
		Schedule: "@hourly", JobTemplate: batchv1.JobTemplateSpec{Spec: job},
	}}, options)
	one(err)
	_, err = typed.RbacV1().Roles(space).Create(ctx, &rbacv1.Role{ObjectMeta: named, Rules: []rbacv1.PolicyRule{{
		Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"},
	}}}, options)
	one(err)
	_, err = typed.RbacV1().RoleBindings(space).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: named,
		RoleRef:  rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "x"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "x", Namespace: space}},
	}, options)
	one(err)
	_, err = typed.NetworkingV1().Ingresses(space).Create(ctx, &networkingv1.Ingress{ObjectMeta: named, Spec: networkingv1.IngressSpec{
		DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
			Name: "x", Port: networkingv1.ServiceBackendPort{Number: 80}}},
	}}, options)
	one(err)
	_, err = typed.NetworkingV1().NetworkPolicies(space).Create(ctx, &networkingv1.NetworkPolicy{ObjectMeta: named}, options)
	one(err)
	_, err = typed.PolicyV1().PodDisruptionBudgets(space).Create(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: named,
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: pointer(intstr.FromString("50%"))}}, options)
	one(err)
	_, err = typed.AutoscalingV2().HorizontalPodAutoscalers(space).Create(ctx, &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: named, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 3,
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: "x", APIVersion: "apps/v1"}}}, options)
	one(err)
	lease, err := typed.CoordinationV1().Leases(space).Create(ctx, &coordinationv1.Lease{ObjectMeta: named,
		Spec: coordinationv1.LeaseSpec{HolderIdentity: pointer("go"), RenewTime: &now, LeaseDurationSeconds: pointer(int32(15))}}, options)
	one(err)
	expect(lease.Spec.RenewTime.Equal(&now), "the time has changed: %v", lease.Spec.RenewTime)
	_, err = typed.EventsV1().Events(space).Create(ctx, &eventsv1.Event{ObjectMeta: named, EventTime: now, Reason: "Tried",
		Action: "Trying", Type: "Normal", ReportingController: "example.org/go", ReportingInstance: "one",
		Regarding: corev1.ObjectReference{Kind: "ConfigMap", Namespace: space, Name: "x"}, Note: "told"}, options)
	one(err)
	event, err := typed.CoreV1().Events(space).Get(ctx, "x", metav1.GetOptions{})
	one(err)
	expect(event.Message == "told" && event.InvolvedObject.Name == "x", "another event: %v", event)
	set, err := typed.AppsV1().StatefulSets(space).Get(ctx, "x", metav1.GetOptions{})
	one(err)
	container := set.Spec.Template.Spec.Containers[0]
	expect(container.ReadinessProbe.HTTPGet.Port.StrVal == "http", "the port has changed: %v", container.ReadinessProbe)
	expect(container.Resources.Requests.Cpu().String() == "250m", "the request has changed: %v", container.Resources)
}

func conflictsAreRetried(w *world) {
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	_, err := maps.Create(w.ctx, configMap("counter", map[string]string{"n": ""}), metav1.CreateOptions{})
	must(err)
	var group sync.WaitGroup
	failed := make(chan error, 8)
	for range 8 {
		group.Go(func() {
			for range 5 {
				failed <- retry.RetryOnConflict(retry.DefaultBackoff, func() error { return count(w.ctx, w) })
			}
		})
	}
	go func() { group.Wait(); close(failed) }()
	right := 0
	for err := range failed {
		if err == nil {
			right++
		} else {
			expect(apierrors.IsConflict(err), "not a conflict: %v", err)
		}
	}
	found, err := maps.Get(w.ctx, "counter", metav1.GetOptions{})
	must(err)
	expect(len(found.Data["n"]) == right, "%d were counted, %d were written", right, len(found.Data["n"]))
}

func count(ctx context.Context, w *world) error {
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	found, err := maps.Get(ctx, "counter", metav1.GetOptions{})
	must(err)
	found.Data["n"] += "x"
	_, err = maps.Update(ctx, found, metav1.UpdateOptions{})
	return err
}

func applyConfigurations(w *world) {
	deployments := w.typed.AppsV1().Deployments(w.namespace)
	wanted := func(replicas int32) *applyapps.DeploymentApplyConfiguration {
		return applyapps.Deployment("web", w.namespace).
			WithLabels(map[string]string{"app": "web"}).
			WithSpec(applyapps.DeploymentSpec().
				WithReplicas(replicas).
				WithSelector(applymeta.LabelSelector().WithMatchLabels(map[string]string{"app": "web"})).
				WithTemplate(applycore.PodTemplateSpec().
					WithLabels(map[string]string{"app": "web"}).
					WithSpec(applycore.PodSpec().WithContainers(
						applycore.Container().WithName("main").WithImage("registry.test/main:1")))))
	}
	made, err := deployments.Apply(w.ctx, wanted(2), metav1.ApplyOptions{FieldManager: "go"})
	must(err)
	expect(*made.Spec.Replicas == 2, "replicas are %d", *made.Spec.Replicas)
	_, err = deployments.Apply(w.ctx, wanted(3), metav1.ApplyOptions{FieldManager: "other"})
	expect(apierrors.IsConflict(err), "a conflict was expected: %v", err)
	for _, cause := range err.(apierrors.APIStatus).Status().Details.Causes {
		expect(cause.Field == ".spec.replicas" && cause.Type == metav1.CauseTypeFieldManagerConflict, "other cause: %v", cause)
	}
	made, err = deployments.Apply(w.ctx, wanted(3), metav1.ApplyOptions{FieldManager: "other", Force: true})
	must(err)
	mine, err := applyapps.ExtractDeployment(made, "go")
	must(err)
	expect(mine.Spec.Replicas == nil && *mine.Spec.Template.Spec.Containers[0].Name == "main", "extracted: %v", mine)
	without := wanted(3)
	without.Spec.Template.Spec.Containers[0].WithEnv(applycore.EnvVar().WithName("A").WithValue("1"))
	made, err = deployments.Apply(w.ctx, without, metav1.ApplyOptions{FieldManager: "other", Force: true})
	must(err)
	expect(made.Spec.Template.Spec.Containers[0].Env[0].Value == "1", "no environment: %v", made.Spec.Template.Spec)
	made, err = deployments.Apply(w.ctx, wanted(3), metav1.ApplyOptions{FieldManager: "other"})
	must(err)
	expect(len(made.Spec.Template.Spec.Containers[0].Env) == 0, "what is not applied any more is still there")
	status := applyapps.Deployment("web", w.namespace).WithStatus(applyapps.DeploymentStatus().WithCollisionCount(1))
	made, err = deployments.ApplyStatus(w.ctx, status, metav1.ApplyOptions{FieldManager: "status", Force: true})
	must(err)
	expect(*made.Status.CollisionCount == 1 && *made.Spec.Replicas == 3, "the status was not applied")
}

func statusScaleAndTokens(w *world) {
	deployments := w.typed.AppsV1().Deployments(w.namespace)
	_, err := deployments.Create(w.ctx, deployment("web", 2), metav1.CreateOptions{})
	must(err)
	must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		found, err := deployments.Get(w.ctx, "web", metav1.GetOptions{})
		must(err)
		found.Status.Conditions = append(found.Status.Conditions, appsv1.DeploymentCondition{Type: "Tried", Status: "True"})
		found.Spec.Replicas = pointer(int32(9))
		found, err = deployments.UpdateStatus(w.ctx, found, metav1.UpdateOptions{})
		expect(err != nil || *found.Spec.Replicas == 2, "the status changed the spec")
		return err
	}))
	must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		scale, err := deployments.GetScale(w.ctx, "web", metav1.GetOptions{})
		must(err)
		expect(scale.Status.Selector == "app=web", "selector %q", scale.Status.Selector)
		scale.Spec.Replicas = 4
		_, err = deployments.UpdateScale(w.ctx, "web", scale, metav1.UpdateOptions{})
		return err
	}))
	patch := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"registry.test/side:1"}]}}}}`)
	found, err := deployments.Patch(w.ctx, "web", types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	must(err)
	expect(len(found.Spec.Template.Spec.Containers) == 2 && *found.Spec.Replicas == 4, "not merged: %v", found.Spec)
	_, err = w.typed.CoreV1().ServiceAccounts(w.namespace).Create(
		w.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{})
	must(err)
	token, err := w.typed.CoreV1().ServiceAccounts(w.namespace).CreateToken(w.ctx, "robot",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: pointer(int64(600))}}, metav1.CreateOptions{})
	must(err)
	review, err := w.typed.AuthenticationV1().TokenReviews().Create(w.ctx,
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token}}, metav1.CreateOptions{})
	must(err)
	expect(review.Status.Authenticated, "the token is not accepted: %v", review.Status)
	w.left["deployment"] = map[string]any{"namespace": w.namespace, "name": "web", "replicas": 4}
}

func pages(w *world) {
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	for index := range 7 {
		_, err := maps.Create(w.ctx, configMap(fmt.Sprintf("c%d", index), nil), metav1.CreateOptions{})
		must(err)
	}
	asked, seen := 0, []string{}
	paged := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		asked++
		return maps.List(ctx, options)
	})
	paged.PageSize = 3
	must(paged.EachListItem(w.ctx, metav1.ListOptions{LabelSelector: "w"}, func(found runtime.Object) error {
		seen = append(seen, found.(*corev1.ConfigMap).Name)
		return nil
	}))
	expect(asked == 3 && len(seen) == 7 && seen[6] == "c6", "%d pages with %v", asked, seen)
}
