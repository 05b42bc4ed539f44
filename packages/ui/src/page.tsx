/** The page: the sign-in, and then the cluster as the worker reports it. */
import { type JSX, render } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Api } from "./api.ts";
import { Cluster } from "./model/cluster.ts";
import type { FromWorker, Start } from "./model/protocol.ts";
import { Explanations } from "./model/why.ts";
import { type App, AppContext, useRoute } from "./parts/app.ts";
import { resume, type Session, signOut } from "./parts/session.ts";
import { startWorker } from "./parts/start-worker.ts";
import { Login } from "./views/login.tsx";
import { Shell } from "./views/shell.tsx";

function Page(): JSX.Element | null {
  const [session, setSession] = useState<Session>({ state: "asking" });
  useEffect(() => void resume().then(setSession), []);
  const leave = (message: string): void => {
    signOut();
    setSession({ state: "out", message });
  };
  if (session.state === "asking") return null;
  if (session.state === "out") return <Login message={session.message} onSession={setSession} />;
  return <Live token={session.token} onRefused={leave} onSignOut={() => leave("")} />;
}

interface LiveProps {
  readonly token: string;
  readonly onRefused: (message: string) => void;
  readonly onSignOut: () => void;
}

function Live({ token, onRefused, onSignOut }: LiveProps): JSX.Element {
  const [route, go] = useRoute();
  const [, setTurn] = useState(0);
  // Where all namespaces are forbidden, another namespace is another set of objects.
  const [scope, setScope] = useState("");
  const api = useMemo(() => new Api(token), [token]);
  const cluster = useMemo(() => new Cluster((report) => void requestAnimationFrame(report)), [token, scope]);
  const explanations = useMemo(() => new Explanations(api, () => setTurn((turn) => turn + 1)), [api, cluster]);
  useEffect(() => {
    const worker = startWorker();
    worker.onmessage = ({ data }: MessageEvent<FromWorker>) => {
      if (data.type === "refused") onRefused("You have been signed out: the token is not accepted any more.");
      else cluster.apply(data);
    };
    const start: Start = { type: "start", token, namespace: scope, isMultiplexed: location.protocol === "https:" };
    worker.postMessage(start);
    return () => worker.terminate();
  }, [token, scope, cluster]);
  const isScoped = cluster.source("namespaces").state === "denied";
  useEffect(() => {
    if (isScoped && route.namespace !== scope) setScope(route.namespace);
  }, [isScoped, route.namespace, scope]);
  const app = useMemo((): App => ({ api, cluster, explanations, route, go }), [api, cluster, explanations, route]);
  return (
    <AppContext.Provider value={app}>
      <Shell onSignOut={onSignOut} />
    </AppContext.Provider>
  );
}

render(<Page />, document.getElementById("page")!);
