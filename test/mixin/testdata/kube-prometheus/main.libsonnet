// The rest of kube-prometheus, with nothing in it.
{
  values:: { common: {}, grafana: { dashboards:: {} } },
  prometheus: {},
  grafana: {},
}
