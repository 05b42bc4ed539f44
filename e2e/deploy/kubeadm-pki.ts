/** A script that writes the files which kubeadm 1.23 leaves in /etc/kubernetes, with openssl: RSA keys, its subjects, names and usages. */
export const kubeadmPki = (node: string, address: string): string => `
mkdir -p /etc/kubernetes/pki/etcd && cd /etc/kubernetes/pki
authority() { # file, name
  openssl req -x509 -newkey rsa:2048 -nodes -keyout $1.key -out $1.crt -subj /CN=$2 -days 3650 \\
    -addext keyUsage=critical,digitalSignature,keyEncipherment,keyCertSign -addext subjectAltName=DNS:$2
}
leaf() { # file, authority, subject, usages, names
  openssl req -new -newkey rsa:2048 -nodes -keyout $1.key -out $1.csr -subj "$3"
  printf 'keyUsage=critical,digitalSignature,keyEncipherment\\nextendedKeyUsage=%s\\nbasicConstraints=critical,CA:FALSE\\nauthorityKeyIdentifier=keyid\\n' "$4" >$1.ext
  [ -z "\${5:-}" ] || echo "subjectAltName=$5" >>$1.ext
  openssl x509 -req -in $1.csr -CA $2.crt -CAkey $2.key -CAcreateserial -out $1.crt -days 365 -extfile $1.ext
  openssl rsa -in $1.key -traditional -out $1.key
  rm $1.csr $1.ext
}
authority ca kubernetes
authority front-proxy-ca front-proxy-ca
authority etcd/ca etcd-ca
leaf apiserver ca /CN=kube-apiserver serverAuth DNS:${node},DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,IP:10.96.0.1,IP:${address}
leaf apiserver-kubelet-client ca /O=system:masters/CN=kube-apiserver-kubelet-client clientAuth
leaf apiserver-etcd-client etcd/ca /O=system:masters/CN=kube-apiserver-etcd-client clientAuth
leaf front-proxy-client front-proxy-ca /CN=front-proxy-client clientAuth
for name in server peer; do
  leaf etcd/$name etcd/ca /CN=${node} serverAuth,clientAuth DNS:${node},DNS:localhost,IP:${address},IP:127.0.0.1,IP:::1
done
leaf etcd/healthcheck-client etcd/ca /O=system:masters/CN=kube-etcd-healthcheck-client clientAuth
openssl genrsa -traditional -out sa.key 2048
openssl rsa -in sa.key -pubout -out sa.pub
conf() { # file, user, subject
  leaf /tmp/conf ca "$3" clientAuth
  cat >/etc/kubernetes/$1.conf <<X
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: $(base64 -w0 ca.crt)
    server: https://${address}:6443
  name: kubernetes
contexts:
- context:
    cluster: kubernetes
    user: $2
  name: $2@kubernetes
current-context: $2@kubernetes
kind: Config
preferences: {}
users:
- name: $2
  user:
    client-certificate-data: $(base64 -w0 /tmp/conf.crt)
    client-key-data: $(base64 -w0 /tmp/conf.key)
X
  chmod 600 /etc/kubernetes/$1.conf
}
conf admin kubernetes-admin /O=system:masters/CN=kubernetes-admin
conf controller-manager system:kube-controller-manager /CN=system:kube-controller-manager
conf scheduler system:kube-scheduler /CN=system:kube-scheduler
conf kubelet system:node:${node} /O=system:nodes/CN=system:node:${node}
chmod 600 *.key etcd/*.key
rm -f *.srl etcd/*.srl
`;
