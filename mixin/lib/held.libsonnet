// For how long an alert about a device must have been true: each duration of the configuration as a
// window that is longer by the step at which it is looked, and as the number of those steps.
local units = { s: 1, m: 60, h: 3600, d: 86400, w: 604800, y: 31536000 };

// seconds of a duration as Prometheus writes it.
local seconds(text) =
  local go(i, n, sum) =
    if i >= std.length(text) then (if n == '' then sum else error 'gpumeter mixin: %s is no duration' % text)
    else
      local c = text[i];
      if c >= '0' && c <= '9' then go(i + 1, n + c, sum)
      else if std.objectHas(units, c) && n != '' then go(i + 1, '', sum + std.parseInt(n) * units[c])
      else error 'gpumeter mixin: %s is no duration in whole seconds' % text;
  go(0, '', 0);

// duration writes seconds as Prometheus does.
local duration(n) =
  local h = std.floor(n / 3600);
  local m = std.floor((n % 3600) / 60);
  local s = n % 60;
  (if h > 0 then '%dh' % h else '') + (if m > 0 then '%dm' % m else '') + (if s > 0 || n == 0 then '%ds' % s else '');

function(config) config {
  [key + suffix]:
    local n = seconds(config[key]);
    // The steps lie on the clock: with no time to hold, a second that has just been is looked at.
    local step = if n == 0 then 1 else 30;
    if suffix == 'Window' then duration(n + step) else if suffix == 'Step' then duration(step) else '%d' % (std.floor(n / step) + 1)
  for key in std.objectFields(config)
  if std.endsWith(key, 'For')
  for suffix in ['Window', 'Step', 'Points']
}
