/** A small faulty change of the product that a review can overlook, to test whether the simulation detects it. */
export interface ProductFault {
  readonly name: string;
  /** Path below `packages`. */
  readonly file: string;
  /** Text to replace; must occur exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  /** Plans to simulate; the seeds alternate between them. */
  readonly plans: readonly string[];
}

export const productFaults: readonly ProductFault[] = [
  {
    name: "etcd's watch skips a revision after a reconnect",
    file: "apiserver/src/storage/etcd/watcher.ts",
    find: "startRevision: Math.max(this.#revision, 1),",
    replace: "startRevision: Math.max(this.#turn > 0 ? this.#revision + 2 : this.#revision, 1),",
    plans: ["deployment", "job"],
  },
  {
    name: "a bookmark is ahead of the events",
    file: "apiserver/src/watch/cache-readers.ts",
    find: "watcher.bookmark(memory.revision())",
    replace: "watcher.bookmark(memory.revision() + 1)",
    plans: ["deployment", "job"],
  },
  {
    name: "a watch resumed from history misses its first change",
    file: "apiserver/src/watch/history.ts",
    find: "return this.#changes.slice(this.#indexAfter(revision)) as Change[];",
    replace: "return this.#changes.slice(this.#indexAfter(revision + 1)) as Change[];",
    plans: ["deployment", "job"],
  },
  {
    name: "an update is accepted under an old resourceVersion",
    file: "apiserver/src/registry/generic/store-update.ts",
    find: "} else if (String(wanted) !== present) throw conflict(definition, name, optimisticLockText);",
    replace:
      "} else if (wanted > BigInt(present)) throw conflict(definition, name, optimisticLockText);\n    else next.metadata.resourceVersion = present;",
    plans: ["deployment", "statefulset"],
  },
  {
    name: "an informer does not list again when its version is too old",
    file: "apimachinery/src/informers/reflector.ts",
    find: "          // A server also refuses the versions from before a restore as too old.\n          return this.#forgetVersion();",
    replace:
      '          this.#resourceVersion = "0";\n          await clock.sleep(this.#watches.next(), signal);\n          continue;',
    plans: ["deployment", "restore"],
  },
  {
    name: "a relist keeps what was deleted meanwhile",
    file: "apimachinery/src/informers/shared-informer.ts",
    find: "const last = present.has(key) ? undefined : this.#store.get(key);",
    replace: "const last = present.has(key) || isOtherHistory ? undefined : this.#store.get(key);",
    plans: ["deployment", "restore"],
  },
  {
    name: "a key that is added while it is processed is lost",
    file: "apimachinery/src/workqueue/queue.ts",
    find: "if (dirty.has(key)) offer(key);",
    replace: "dirty.delete(key);",
    plans: ["deployment", "job"],
  },
  {
    name: "after an error other than a conflict a key is not requeued",
    file: "apimachinery/src/controller/controller.ts",
    find: "const delayMs = queue.addRateLimited(key);",
    replace: "const delayMs = isConflict(err) ? queue.addRateLimited(key) : 0;",
    plans: ["deployment", "job"],
  },
  {
    name: "a lease is taken over before it has expired",
    file: "apimachinery/src/controller/leader-election.ts",
    find: "clock.monotonic() - this.#observedAt < leaseDurationMs",
    replace: "clock.monotonic() - this.#observedAt < this.#options.renewDeadlineMs",
    plans: ["deployment", "job"],
  },
  {
    name: "a lease is written without resourceVersion",
    file: "apimachinery/src/controller/resource-lock.ts",
    find: "{ ...last, spec: { ...last.spec, ...leaseSpec(record) } }",
    replace:
      "{ ...last, metadata: { ...last.metadata, resourceVersion: undefined }, spec: { ...last.spec, ...leaseSpec(record) } } as LeaseObject",
    plans: ["deployment", "job"],
  },
  {
    name: "creations that fail stay expected",
    file: "controller-manager/src/pods/apply-pod-changes.ts",
    find: "  for (let i = succeeded; i < create.length; i++) expectations.creationObserved(key);",
    replace: "  void succeeded;",
    plans: ["deployment", "quota"],
  },
  {
    name: "creations are not expected",
    file: "controller-manager/src/pods/apply-pod-changes.ts",
    find: "    create.length,\n    toDelete.map",
    replace: "    0,\n    toDelete.map",
    plans: ["deployment", "job"],
  },
  {
    name: "the deployment's scaling of a ReplicaSet has no resourceVersion",
    file: "controller-manager/src/controllers/deployment/writes.ts",
    find: "ctx.client.update<ReplicaSet>(replicaSets, changed, { signal })",
    replace:
      "ctx.client.update<ReplicaSet>(replicaSets, { ...changed, metadata: { ...changed.metadata, resourceVersion: undefined } } as never, { signal })",
    plans: ["deployment", "restore"],
  },
  {
    name: "the foreground finalizer is removed before the dependents are gone",
    file: "controller-manager/src/controllers/garbagecollector/controller.ts",
    find: "  if (blocking.length > 0) {",
    replace: "  if (blocking.some(({ deletingDependents }) => deletingDependents)) {",
    plans: ["ownership"],
  },
  {
    name: "absent owners are remembered without their uid",
    file: "controller-manager/src/controllers/garbagecollector/controller.ts",
    find: "function absenceKey({ apiVersion, kind, namespace, name, uid }: Identity): string {\n  return JSON.stringify([apiVersion, kind, namespace, name, uid]);",
    replace:
      "function absenceKey({ apiVersion, kind, namespace, name }: Identity): string {\n  return JSON.stringify([apiVersion, kind, namespace, name]);",
    plans: ["ownership"],
  },
  {
    name: "a quota is not counted again when a pod is gone",
    file: "controller-manager/src/controllers/resourcequota/monitors.ts",
    find: "      deleted: replenished,\n",
    replace: "",
    plans: ["quota"],
  },
  {
    name: "endpoints are not updated when a pod is deleted",
    file: "controller-manager/src/services/service-pods.ts",
    find: '          const change = endpointChange(old, now);\n          // Most changes leave the labels as they are; the old version then has the same Services.\n          if (change === "labels") enqueueFor(old, now);\n          else if (change === "other") enqueueFor(now);\n        },\n        deleted: (pod: Pod) => enqueueFor(pod),',
    replace:
      '          const change = now.metadata.deletionTimestamp ? "none" : endpointChange(old, now);\n          // Most changes leave the labels as they are; the old version then has the same Services.\n          if (change === "labels") enqueueFor(old, now);\n          else if (change === "other") enqueueFor(now);\n        },\n        deleted: () => {},',
    plans: ["service"],
  },
  {
    name: "an eviction does not lower the budget",
    file: "apiserver/src/registry/core/pods/eviction.ts",
    find: "next.disruptionsAllowed = allowed - 1;",
    replace: "next.disruptionsAllowed = allowed;",
    plans: ["eviction"],
  },
  {
    name: "a namespace is finalized while objects with finalizers remain",
    file: "controller-manager/src/controllers/namespace/writes.ts",
    find: "return { objects, estimateSeconds: finalizerEstimateSeconds };",
    replace: "return { objects, estimateSeconds: 0 };",
    plans: ["namespace"],
  },
  {
    name: "a binding that failed stays assumed",
    file: "scheduler/src/scheduler.ts",
    find: "      this.#cache.forget(pod);\n      // The assumed",
    replace: "      // The assumed",
    plans: ["deployment", "job"],
  },
  {
    name: "a StatefulSet's pod is deleted without its uid",
    file: "controller-manager/src/controllers/statefulset/writes.ts",
    find: "const preconditions = uid === undefined ? {} : { preconditions: { uid } };",
    replace: "const preconditions = uid === undefined ? { preconditions: { uid } } : {};",
    plans: ["statefulset"],
  },
  {
    name: "finished pods of a Job are let go before they are counted",
    file: "controller-manager/src/controllers/job/tracking.ts",
    find: '} else if ((phase === "Failed" || terminating) && hasValidIndex(job, pod)) failed.add(uidOf(pod));',
    replace: "}",
    plans: ["job"],
  },
  {
    name: "the time of a toleration is counted anew at each look",
    file: "controller-manager/src/controllers/nodelifecycle/taint-manager.ts",
    find: "const since = toleratedSince.getOrInsert(uid, now);",
    replace: "const since = toleratedSince.set(uid, now).get(uid) as number;",
    plans: ["nodelifecycle"],
  },
  {
    name: "an exclusive volume is attached to a second node",
    file: "controller-manager/src/controllers/attachdetach/plan.ts",
    find: "exclusive && taken.length > 0",
    replace: "exclusive && assigned.length > 0",
    plans: ["attachdetach"],
  },
  {
    name: "an eviction that marked its pod and did not remove it is taken for done",
    file: "controller-manager/src/controllers/nodelifecycle/taint-manager.ts",
    find: "if (isMarked && !isLeftBehind(pod)) return done;",
    replace: "if (isMarked) return done;",
    plans: ["nodelifecycle"],
  },
  {
    name: "a node keeps whatever TTL it has",
    file: "controller-manager/src/controllers/ttl/controller.ts",
    find: "node.metadata.annotations?.[ttlAnnotation] === wanted",
    replace: "node.metadata.annotations?.[ttlAnnotation] !== undefined",
    plans: ["ttl"],
  },
  {
    name: "an aggregated role keeps the rules of a role that is deleted",
    file: "controller-manager/src/controllers/clusterrole-aggregation/controller.ts",
    find: "deleted: enqueueAggregated }",
    replace: "deleted: () => {} }",
    plans: ["clusterrole-aggregation"],
  },
  {
    name: "the claim of an ephemeral volume has no owner",
    file: "controller-manager/src/controllers/ephemeral-volume/controller.ts",
    find: "      ownerReferences: [newControllerRef(pod, pods)],\n",
    replace: "",
    plans: ["ephemeral-volume"],
  },
  {
    name: "the growth of a claim is not noticed",
    file: "controller-manager/src/controllers/persistentvolume-expander/controller.ts",
    find: "if (hasGrown || requestedSize(now).cmp(requestedSize(old)) > 0) enqueueBound(now);",
    replace: "if (hasGrown) enqueueBound(now);",
    plans: ["volume-expansion"],
  },
  {
    name: "a certificate is signed without approval",
    file: "controller-manager/src/controllers/csrsigning/controller.ts",
    find: '    conditionOf(csr, "Approved") !== undefined &&\n',
    replace: "",
    plans: ["certificates"],
  },
  {
    name: "old certificate requests after one that is kept are not deleted",
    file: "controller-manager/src/controllers/csrcleaner/controller.ts",
    find: "if (why === undefined) continue;",
    replace: "if (why === undefined) return;",
    plans: ["csrcleaner"],
  },
  {
    name: "Endpoints that the cache does not show yet stay after their Service was deleted",
    file: "controller-manager/src/controllers/endpoint/controller.ts",
    find: "  if (current?.metadata.annotations?.[leaderAnnotation] !== undefined) return done;",
    replace: "  if (current === undefined || current.metadata.annotations?.[leaderAnnotation] !== undefined) return done;",
    plans: ["service"],
  },
  {
    name: "an endpoint that ends stays ready",
    file: "controller-manager/src/controllers/endpointslice/endpoints-of-pods.ts",
    find: "|| (serving && !terminating)",
    replace: "|| serving",
    plans: ["service"],
  },
  {
    name: "a second daemon is started beside one that runs, while the set surges",
    file: "controller-manager/src/controllers/daemonset/plan.ts",
    find: "else if (running.length === 0 && shouldRun && waitMs === 0)",
    replace: "else if (shouldRun && waitMs === 0)",
    plans: ["daemonset"],
  },
  {
    name: "a second daemon is started beside one that ends",
    file: "controller-manager/src/controllers/daemonset/plan.ts",
    find: "if (existing.length === 0) {",
    replace: "if (remaining.length === 0) {",
    plans: ["daemonset"],
  },
  {
    name: "a DaemonSet with OnDelete replaces its pods",
    file: "controller-manager/src/controllers/daemonset/controller.ts",
    find: 'settled && daemonSet.spec.updateStrategy?.type === "RollingUpdate"',
    replace: "settled",
    plans: ["daemonset"],
  },
  {
    name: "a CronJob starts Jobs only when it is suspended",
    file: "controller-manager/src/controllers/cronjob/plan.ts",
    find: "spec.suspend === true) return { events };",
    replace: "spec.suspend !== true) return { events };",
    plans: ["cronjob"],
  },
  {
    name: "a CronJob starts Jobs after it was suspended",
    file: "controller-manager/src/controllers/cronjob/plan.ts",
    find: "metadata.deletionTimestamp || spec.suspend === true)",
    replace: "metadata.deletionTimestamp)",
    plans: ["cronjob"],
  },
];
