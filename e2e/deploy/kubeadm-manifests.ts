/** The static pods of a control plane as kubeadm 1.23 writes them. Source: kubeadm's phases control-plane and etcd. */

const address = "10.111.0.1";
const version = "v1.23.0";

interface Probe {
  readonly path: string;
  readonly port: number;
  readonly scheme: "HTTP" | "HTTPS";
  readonly host: string;
}

interface Component {
  readonly image: string;
  readonly cpu: string;
  readonly live: Probe;
  readonly ready?: Probe;
  /** Keyed by volume name: path on the node and in the container, and the type. */
  readonly volumes: Readonly<Record<string, readonly [path: string, type: string]>>;
  readonly flags: readonly string[];
}

const certificates = {
  "ca-certs": ["/etc/ssl/certs", "DirectoryOrCreate"],
  "etc-ca-certificates": ["/etc/ca-certificates", "DirectoryOrCreate"],
  "k8s-certs": ["/etc/kubernetes/pki", "DirectoryOrCreate"],
} as const;
const of = (host: string, port: number, path: string, scheme: Probe["scheme"] = "HTTPS"): Probe => ({ host, port, path, scheme });

export const components: Readonly<Record<string, Component>> = {
  etcd: {
    image: "k8s.gcr.io/etcd:3.5.1-0",
    cpu: "100m",
    live: of("127.0.0.1", 2381, "/health", "HTTP"),
    volumes: {
      "etcd-certs": ["/etc/kubernetes/pki/etcd", "DirectoryOrCreate"],
      "etcd-data": ["/var/lib/etcd", "DirectoryOrCreate"],
    },
    flags: [
      `--advertise-client-urls=https://${address}:2379`,
      "--cert-file=/etc/kubernetes/pki/etcd/server.crt",
      "--client-cert-auth=true",
      "--data-dir=/var/lib/etcd",
      `--initial-advertise-peer-urls=https://${address}:2380`,
      `--initial-cluster=machine=https://${address}:2380`,
      "--key-file=/etc/kubernetes/pki/etcd/server.key",
      `--listen-client-urls=https://127.0.0.1:2379,https://${address}:2379`,
      "--listen-metrics-urls=http://127.0.0.1:2381",
      `--listen-peer-urls=https://${address}:2380`,
      "--name=machine",
      "--peer-cert-file=/etc/kubernetes/pki/etcd/peer.crt",
      "--peer-client-cert-auth=true",
      "--peer-key-file=/etc/kubernetes/pki/etcd/peer.key",
      "--peer-trusted-ca-file=/etc/kubernetes/pki/etcd/ca.crt",
      "--snapshot-count=10000",
      "--trusted-ca-file=/etc/kubernetes/pki/etcd/ca.crt",
    ],
  },
  "kube-apiserver": {
    image: `k8s.gcr.io/kube-apiserver:${version}`,
    cpu: "250m",
    live: of(address, 6443, "/livez"),
    ready: of(address, 6443, "/readyz"),
    volumes: certificates,
    flags: [
      `--advertise-address=${address}`,
      "--allow-privileged=true",
      "--authorization-mode=Node,RBAC",
      "--client-ca-file=/etc/kubernetes/pki/ca.crt",
      "--enable-admission-plugins=NodeRestriction",
      "--enable-bootstrap-token-auth=true",
      "--etcd-cafile=/etc/kubernetes/pki/etcd/ca.crt",
      "--etcd-certfile=/etc/kubernetes/pki/apiserver-etcd-client.crt",
      "--etcd-keyfile=/etc/kubernetes/pki/apiserver-etcd-client.key",
      "--etcd-servers=https://127.0.0.1:2379",
      "--kubelet-client-certificate=/etc/kubernetes/pki/apiserver-kubelet-client.crt",
      "--kubelet-client-key=/etc/kubernetes/pki/apiserver-kubelet-client.key",
      "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
      "--proxy-client-cert-file=/etc/kubernetes/pki/front-proxy-client.crt",
      "--proxy-client-key-file=/etc/kubernetes/pki/front-proxy-client.key",
      "--requestheader-allowed-names=front-proxy-client",
      "--requestheader-client-ca-file=/etc/kubernetes/pki/front-proxy-ca.crt",
      "--requestheader-extra-headers-prefix=X-Remote-Extra-",
      "--requestheader-group-headers=X-Remote-Group",
      "--requestheader-username-headers=X-Remote-User",
      "--secure-port=6443",
      "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
      "--service-account-key-file=/etc/kubernetes/pki/sa.pub",
      "--service-account-signing-key-file=/etc/kubernetes/pki/sa.key",
      "--service-cluster-ip-range=10.96.0.0/12",
      "--tls-cert-file=/etc/kubernetes/pki/apiserver.crt",
      "--tls-private-key-file=/etc/kubernetes/pki/apiserver.key",
    ],
  },
  "kube-controller-manager": {
    image: `k8s.gcr.io/kube-controller-manager:${version}`,
    cpu: "200m",
    live: of("127.0.0.1", 10257, "/healthz"),
    volumes: {
      ...certificates,
      "flexvolume-dir": ["/usr/libexec/kubernetes/kubelet-plugins/volume/exec", "DirectoryOrCreate"],
      kubeconfig: ["/etc/kubernetes/controller-manager.conf", "FileOrCreate"],
    },
    flags: [
      "--allocate-node-cidrs=true",
      "--authentication-kubeconfig=/etc/kubernetes/controller-manager.conf",
      "--authorization-kubeconfig=/etc/kubernetes/controller-manager.conf",
      "--bind-address=127.0.0.1",
      "--client-ca-file=/etc/kubernetes/pki/ca.crt",
      "--cluster-cidr=10.244.0.0/16",
      "--cluster-name=kubernetes",
      "--cluster-signing-cert-file=/etc/kubernetes/pki/ca.crt",
      "--cluster-signing-key-file=/etc/kubernetes/pki/ca.key",
      "--controllers=*,bootstrapsigner,tokencleaner",
      "--kubeconfig=/etc/kubernetes/controller-manager.conf",
      "--leader-elect=true",
      "--requestheader-client-ca-file=/etc/kubernetes/pki/front-proxy-ca.crt",
      "--root-ca-file=/etc/kubernetes/pki/ca.crt",
      "--service-account-private-key-file=/etc/kubernetes/pki/sa.key",
      "--service-cluster-ip-range=10.96.0.0/12",
      "--use-service-account-credentials=true",
    ],
  },
  "kube-scheduler": {
    image: `k8s.gcr.io/kube-scheduler:${version}`,
    cpu: "100m",
    live: of("127.0.0.1", 10259, "/healthz"),
    volumes: { kubeconfig: ["/etc/kubernetes/scheduler.conf", "FileOrCreate"] },
    flags: [
      "--authentication-kubeconfig=/etc/kubernetes/scheduler.conf",
      "--authorization-kubeconfig=/etc/kubernetes/scheduler.conf",
      "--bind-address=127.0.0.1",
      "--kubeconfig=/etc/kubernetes/scheduler.conf",
      "--leader-elect=true",
    ],
  },
};

/** JSON is valid YAML. */
export function manifest(name: string): string {
  const { image, cpu, live, ready, volumes, flags } = components[name] as Component;
  const readOnly = (volume: string): boolean => !["etcd-certs", "etcd-data", "flexvolume-dir"].includes(volume);
  const slow = { initialDelaySeconds: 10, periodSeconds: 10, timeoutSeconds: 15, httpGet: live };
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { creationTimestamp: null, labels: { component: name, tier: "control-plane" }, name, namespace: "kube-system" },
    spec: {
      containers: [
        {
          command: [name, ...flags],
          image,
          imagePullPolicy: "IfNotPresent",
          livenessProbe: { ...slow, failureThreshold: 8 },
          name,
          ...(ready && { readinessProbe: { failureThreshold: 3, periodSeconds: 1, timeoutSeconds: 15, httpGet: ready } }),
          resources: { requests: { cpu } },
          startupProbe: { ...slow, failureThreshold: 24 },
          volumeMounts: Object.entries(volumes).map(([volume, [path]]) => ({
            mountPath: path,
            name: volume,
            ...(readOnly(volume) && { readOnly: true }),
          })),
        },
      ],
      hostNetwork: true,
      priorityClassName: "system-node-critical",
      securityContext: { seccompProfile: { type: "RuntimeDefault" } },
      volumes: Object.entries(volumes).map(([volume, [path, type]]) => ({ hostPath: { path, type }, name: volume })),
    },
    status: {},
  };
  return `${JSON.stringify(pod, undefined, 2)}\n`;
}
