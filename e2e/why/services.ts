import { deployment, manifest, pod, type Situation, service } from "./situation.ts";

const web = { labels: { app: "web" } };

/** Services and names. */
export const serviceSituations: readonly Situation[] = [
  {
    name: "service-selector",
    objects: [
      service({ selector: { app: "web", tier: "front" } }),
      pod("web", {}, { schedulerName: "nobody" }, { labels: { app: "web", tier: "back" } }),
    ],
    args: ["service/web"],
    phrase: /its selector app=web,tier=front matches no pod of the namespace; pod web has tier=back/,
    quick: true,
  },
  {
    name: "service-pods",
    objects: [service({ selector: { app: "web" } }), deployment({ image: "not-on-the-node:1", imagePullPolicy: "Never" })],
    args: ["svc/web"],
    phrase: /^Cause: pod\/web-\S+: container main: image not-on-the-node:1 is not on the node/,
  },
  {
    name: "service-port",
    objects: [
      service({ selector: { app: "web" }, ports: [{ port: 80, targetPort: "http" }] }),
      pod("web", { ports: [{ name: "web", containerPort: 80 }] }, {}, web),
    ],
    args: ["service/web"],
    phrase: /target port http of port 80 is a name that no container of its pods has \(they have web\)/,
    quick: true,
  },
  {
    name: "service-empty",
    objects: [service({})],
    args: ["service/web"],
    phrase: /has no selector, and no endpoints have been created for it/,
  },
  {
    name: "service-balancer",
    objects: [
      service({ type: "LoadBalancer", loadBalancerClass: "why.example.com/none", selector: { app: "web" } }),
      pod("web", {}, {}, web),
    ],
    steps: [["wait", "pod/web", "--for=condition=Ready", "--timeout=120s"]],
    args: ["service/web"],
    phrase: /no load balancer has given it an address/,
  },
  {
    name: "ingress-backend",
    objects: [
      manifest("networking.k8s.io/v1", "IngressClass", "why-ingress-backend", { spec: { controller: "why.example.com/none" } }),
      manifest("networking.k8s.io/v1", "Ingress", "web", {
        spec: { ingressClassName: "why-ingress-backend", defaultBackend: { service: { name: "gone", port: { number: 80 } } } },
      }),
    ],
    args: ["ingress/web"],
    phrase: /its backend service gone does not exist/,
    undo: [["delete", "ingressclass", "why-ingress-backend"]],
  },
];
