// A generated dashboard with a configuration put in.
local escaped(text) = std.strReplace(std.strReplace(text, '\\', '\\\\'), '"', '\\"');

function(config, text)
  local selected = std.strReplace(text, 'jobSelector__=\\"\\"', escaped(config.gpumeterSelector));
  local board = std.parseJson(std.strReplace(selected, 'clusterLabel__', config.clusterLabel));
  local hidden(variable) = if variable.name == 'cluster' && !config.showMultiCluster then { hide: 2 } else {};
  board {
    title: config.dashboardNamePrefix + super.title,
    tags: config.dashboardTags,
    links: [link { tags: config.dashboardTags } for link in super.links],
    templating+: { list: [variable + hidden(variable) for variable in super.list] },
  }
