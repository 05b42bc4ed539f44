import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueMapped, enqueueSelf } from "@coxswain/apimachinery/controller/sources";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { hasCause, isAlreadyExists } from "@coxswain/apimachinery/objects/errors/predicates";
import { deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { type ObjectKey, toKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { ConfigMap, Namespace } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { configMaps, namespaces } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { ControllerContext } from "../../controller-context.ts";
import { defineController } from "../../define-controller.ts";

/**
 * root-ca-cert-publisher: maintains the ConfigMap `kube-root-ca.crt`, with which Pods verify the API server, in every active
 * namespace. Watches Namespaces and ConfigMaps (key of the namespace); writes ConfigMaps. Disabled without a CA bundle.
 * Source: pkg/controller/certificates/rootcacertpublisher/publisher.go
 */
export function newRootCaCertPublisher(base: ControllerContext): Controller | undefined {
  const { rootCa } = base.config;
  if (rootCa === undefined) {
    base.log.warn("no root CA in --root-ca-file or the kubeconfig; kube-root-ca.crt is not published");
    return undefined;
  }
  const ctx: RootCaContext = {
    ...base,
    rootCa,
    namespaces: base.informers.for<Namespace>(namespaces),
    configMaps: base.informers.for<ConfigMap>(configMaps),
  };
  return defineController(ctx, {
    name: "root_ca_cert_publisher",
    sources: [
      enqueueSelf(ctx.namespaces),
      enqueueMapped(ctx.configMaps, ({ metadata }) => (metadata.name === configMapName ? [metadata.namespace ?? ""] : [])),
    ],
    reconcile,
  });
}

const configMapName = "kube-root-ca.crt";
const annotations = {
  "kubernetes.io/description":
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service " +
    "IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.",
};

interface RootCaContext extends ControllerContext {
  readonly rootCa: string;
  readonly namespaces: SharedInformer<Namespace>;
  readonly configMaps: SharedInformer<ConfigMap>;
}

async function reconcile(ctx: RootCaContext, namespace: ObjectKey, signal: AbortSignal): Promise<Result> {
  const found = ctx.namespaces.lister.get(namespace);
  if (found?.status?.phase !== "Active") return done;
  const data = { "ca.crt": ctx.rootCa };
  const current = ctx.configMaps.lister.get(toKey(namespace, configMapName));
  if (current === undefined) {
    try {
      await ctx.client.create<ConfigMap>(
        configMaps,
        { metadata: { namespace, name: configMapName, annotations }, data },
        { signal },
      );
    } catch (err) {
      if (!isAlreadyExists(err) && !hasCause(err, "NamespaceTerminating")) throw err;
    }
    return done;
  }
  const described = current.metadata.annotations?.["kubernetes.io/description"] === annotations["kubernetes.io/description"];
  if (described && deepEqual(current.data, data)) return done;
  const metadata = { ...current.metadata, annotations: { ...current.metadata.annotations, ...annotations } };
  await ctx.client.update<ConfigMap>(configMaps, { ...current, metadata, data }, { signal });
  return done;
}
