// Draws what one person sees and sends what that person does. Text from messages only ever becomes text nodes.
"use strict";

const $ = (id) => document.getElementById(id);
let view = null;
let stream = null;
// The person who may read tickets, in the conversation with the bot where they are read.
let at = { user: "U_SAM", channel: "D_SAM", thread: "" };
const drawn = new Map();

function el(name, properties = {}, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children.filter((child) => child !== null));
  return node;
}

// Text

const unescaped = (text) => text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");

const linkable = (url) => /^(https?|mailto):/i.test(url);

function link(url, label) {
  if (!linkable(url)) return document.createTextNode(label);
  return el("a", { href: url, target: "_blank", rel: "noopener noreferrer", title: url }, label);
}

function token(inside) {
  const [target, label] = inside.split("|");
  if (target.startsWith("@")) return el("strong", {}, "@" + (view.users[target.slice(1)] ?? target.slice(1)));
  if (target.startsWith("#")) return el("strong", {}, "#" + (label ?? target.slice(1)));
  if (target.startsWith("!")) return el("strong", {}, "@" + (label ?? target.slice(1)));
  if (!linkable(target)) return document.createTextNode(`<${unescaped(inside)}>`);
  return link(unescaped(target), unescaped(label ?? target));
}

const MRKDWN = /```([\s\S]*?)```|`([^`\n]+)`|<([^<>\n]+)>|\*([^*\n]+)\*|\b_([^_\n]+)_\b|~([^~\n]+)~/g;
const MARKDOWN = /(\u0000)|`([^`\n]+)`|<([^<>\n]+)>|\*\*([^*\n]+)\*\*|\b_([^_\n]+)_\b|~~([^~\n]+)~~|\[([^\]\n]+)\]\(([^)\s]+)\)/g;

function inline(text, rules, plain = unescaped) {
  const nodes = [];
  let from = 0;
  for (const found of text.matchAll(rules)) {
    nodes.push(plain(text.slice(from, found.index)));
    from = found.index + found[0].length;
    const [, fence, code, inside, bold, italic, strike, label, url] = found;
    if (fence !== undefined) nodes.push(el("pre", {}, plain(fence)));
    else if (code !== undefined) nodes.push(el("code", {}, plain(code)));
    else if (inside !== undefined) nodes.push(token(inside));
    else if (bold !== undefined) nodes.push(el("strong", {}, ...inline(bold, rules, plain)));
    else if (italic !== undefined) nodes.push(el("em", {}, ...inline(italic, rules, plain)));
    else if (strike !== undefined) nodes.push(el("s", {}, ...inline(strike, rules, plain)));
    else nodes.push(link(url, plain(label)));
  }
  nodes.push(plain(text.slice(from)));
  return nodes;
}

const mrkdwn = (text) => el("div", { className: "text" }, ...inline(text, MRKDWN));

function markdown(text) {
  const box = el("div");
  const write = (line) => inline(line, MARKDOWN);
  const lines = text.split("\n");
  for (let n = 0; n < lines.length; ) {
    const take = (matches) => {
      const taken = [];
      while (n < lines.length && matches(lines[n])) taken.push(lines[n++]);
      return taken;
    };
    if (/^\s*```/.test(lines[n])) {
      n++;
      box.append(el("pre", {}, take((line) => !/^\s*```/.test(line)).join("\n")));
      n++;
    } else if (/^#{1,6} /.test(lines[n])) {
      box.append(el("p", {}, el("strong", {}, ...write(lines[n++].replace(/^#+ /, "")))));
    } else if (/^\s*([-*+]|\d+[.)]) /.test(lines[n])) {
      const ordered = /^\s*\d/.test(lines[n]);
      const items = take((line) => /^\s*([-*+]|\d+[.)]) /.test(line));
      const body = items.map((line) => el("li", {}, ...write(line.replace(/^\s*([-*+]|\d+[.)]) /, ""))));
      box.append(el(ordered ? "ol" : "ul", {}, ...body));
    } else if (/^>/.test(lines[n])) {
      box.append(el("blockquote", { className: "text" }, ...write(take((line) => /^>/.test(line)).map((line) => line.replace(/^> ?/, "")).join("\n"))));
    } else if (/^\|/.test(lines[n])) {
      const rows = take((line) => /^\|/.test(line)).filter((line) => !/^\|[\s:|-]+$/.test(line));
      const cells = (line) => line.replace(/^\||\|\s*$/g, "").split("|");
      box.append(el("table", {}, ...rows.map((line) => el("tr", {}, ...cells(line).map((cell) => el("td", {}, ...write(cell.trim())))))));
    } else if (lines[n].trim() === "") {
      n++;
    } else {
      const paragraph = take((line) => line.trim() !== "" && !/^(\s*```|#{1,6} |>|\||\s*([-*+]|\d+[.)]) )/.test(line));
      box.append(el("p", { className: "text" }, ...write(paragraph.length ? paragraph.join("\n") : lines[n++])));
    }
  }
  return box;
}

const textOf = (value) =>
  typeof value === "string" ? value : value?.type === "mrkdwn" ? mrkdwn(value.text) : (value?.text ?? "");

// Blocks

function element(item, message) {
  if (item.type === "feedback_buttons") {
    return el("span", {}, ...["positive_button", "negative_button"].map((name) => button(item[name].text, item, message)));
  }
  if (item.type === "button" && item.url) return link(item.url, item.text.text);
  if (item.type === "button") return button(item.text, item, message);
  if (item.type === "icon_button") return button(item.text ?? { text: item.icon }, item, message);
  return el("code", {}, item.type);
}

function button(text, item, message) {
  return el("button", {
    type: "button",
    className: item.style ?? "",
    onclick: () => act({ do: "click", ts: message.ts, action_id: item.action_id }),
  }, text.text);
}

function block(item, message) {
  switch (item.type) {
    case "section":
      return el("div", {},
        item.text ? textOf(item.text) : null,
        ...(item.fields ?? []).map((field) => el("div", {}, textOf(field))),
        item.accessory ? element(item.accessory, message) : null);
    case "markdown":
      return markdown(item.text);
    case "header":
      return el("h3", {}, textOf(item.text));
    case "context":
      return el("div", { className: "context" }, ...item.elements.map((each) => el("div", {}, textOf(each))));
    case "actions":
    case "context_actions":
      return el("div", {}, ...item.elements.map((each) => element(each, message)));
    case "divider":
      return el("hr");
    default:
      return el("pre", {}, JSON.stringify(item, null, 1));
  }
}

// Messages

function messageItem(message, channel, inThread) {
  const time = new Date(Number(message.ts) * 1000).toLocaleTimeString();
  const mine = message.user === at.user && !message.gone;
  const replies = channel.messages.filter((each) => each.thread === message.ts).length;
  const status = channel.statuses[message.ts];
  const tool = (label, onclick) => el("button", { type: "button", onclick }, label);
  const body = message.blocks.length ? message.blocks.map((each) => block(each, message)) : [mrkdwn(message.text)];
  if (message.blocks.length && message.streaming) body.unshift(markdown(message.text));
  return el("li", { className: message.ephemeral ? "ephemeral" : "" },
    el("span", { className: "who" }, view.users[message.user] ?? message.user), " ",
    el("span", { className: "when" }, time + (message.edited ? " (edited)" : "")),
    message.ephemeral ? el("div", { className: "small" }, "Only visible to you") : null,
    ...body,
    ...message.tasks.map((task) => el("div", { className: "small" }, `${task.status ?? "plan"}: ${task.title}`)),
    message.streaming ? el("div", { className: "status" }, "still writing") : null,
    ...Object.entries(message.reactions).map(([name, count]) => el("span", { className: "small" }, `:${name}: ${count} `)),
    status && !inThread ? el("div", { className: "status" }, `${view.users[view.bot]} ${status}`) : null,
    el("div", { className: "tools" },
      inThread || message.ephemeral ? null : tool(replies ? `${replies} in thread` : "Reply in thread", () => go({ thread: message.ts })),
      mine ? tool("Edit", () => edit(message)) : null,
      mine ? tool("Delete", () => act({ do: "delete", ts: message.ts })) : null));
}

function edit(message) {
  const shown = unescaped(message.text.replace(/<@([A-Z0-9_]+)>/g, (all, id) => "@" + (view.users[id] ?? id)));
  const text = prompt("Edit the message", shown);
  if (text !== null) act({ do: "edit", ts: message.ts, text });
}

function fill(id, key, make) {
  // Only what changed is drawn again, so that focus and scrolling stay.
  const seen = JSON.stringify(key);
  if (drawn.get(id) === seen) return;
  drawn.set(id, seen);
  const box = $(id);
  const atEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 40;
  box.replaceChildren(...make());
  if (atEnd) box.scrollTop = box.scrollHeight;
}

function draw() {
  const channel = view.channels.find((each) => each.id === at.channel) ?? view.channels.find((each) => each.kind === "im") ?? view.channels[0];
  at.channel = channel?.id ?? "";
  const sign = { public: "#", private: "#", im: "", mpim: "" };
  const named = (each) => sign[each.kind] + each.name + (each.shared ? " (shared)" : each.kind === "private" ? " (private)" : "");
  fill("person", [view.people, at.user], () => view.people.map((id) => el("option", { value: id, selected: id === at.user }, view.users[id])));
  fill("channels", [view.channels.map((each) => [each.id, each.name]), at.channel], () => view.channels.map((each) => {
    const choose = el("button", { type: "button", onclick: () => go({ channel: each.id, thread: "" }) }, named(each));
    choose.setAttribute("aria-current", each.id === at.channel);
    return el("li", {}, choose);
  }));
  fill("calls", view.calls, () => view.calls.map((call) => el("li", {}, call.error ? `${call.method}: ${call.error}` : call.method)));
  fill("violations", view.violations, () => (view.violations.length ? view.violations : ["none"]).map((text) => el("li", {}, text)));
  $("connection").textContent = view.connections ? `The bot is connected (${view.connections}).` : "No bot is connected.";
  if (!channel) return;
  $("title").textContent = named(channel);
  const ask = channel.kind === "im" ? "Message" : `Message, with @${view.users[view.bot]} to ask the bot`;
  $("hint").textContent = [ask, ...view.commands].join(", or ");
  $("note").textContent = channel.archived ? "Archived." : channel.bot ? "" : "The bot is not in this channel.";
  const top = channel.messages.filter((each) => !each.thread);
  fill("messages", [at, view.users, channel], () => top.map((each) => messageItem(each, channel, false)));
  fill("prompts", [at.channel, channel.prompts], () => channel.prompts.map((each) =>
    el("button", { type: "button", onclick: () => { $("text").value = each.message; $("text").focus(); } }, each.title)));
  $("thread").hidden = !at.thread;
  const status = channel.statuses[at.thread];
  const replies = channel.messages.filter((each) => at.thread && (each.ts === at.thread || each.thread === at.thread));
  fill("replies", [at, view.users, channel], () => [
    ...replies.map((each) => messageItem(each, channel, true)),
    ...(status ? [el("li", { className: "status" }, `${view.users[view.bot]} ${status}`)] : []),
    ...(channel.working.includes(at.thread) ? [el("li", {}, el("button", { type: "button", onclick: () => act({ do: "stop", ts: at.thread }) }, "Stop"))] : []),
  ]);
}

// What the person does

async function act(request) {
  const body = { user: at.user, channel: at.channel, ...request };
  const response = await fetch("/page/do", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  $("error").textContent = response.ok ? "" : await response.text();
  return response.ok ? response.json() : null;
}

// A message that the bot answers is answered in its thread, which is opened at once, as nobody should have to look for it.
async function say(text) {
  const command = view.commands.find((name) => text === name || text.startsWith(name + " "));
  if (command) return act({ do: "command", command, text: text.slice(command.length).trim() });
  const said = await act({ do: "say", text });
  const channel = view.channels.find((each) => each.id === at.channel);
  if (said && (channel?.kind === "im" || text.includes("@" + view.users[view.bot]))) go({ thread: said.ts });
  return said;
}

function form(id, field, submit) {
  const send = async () => {
    if (await submit($(field).value.trim())) $(field).value = "";
  };
  $(id).addEventListener("submit", (event) => { event.preventDefault(); send(); });
  $(field).addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      $(id).requestSubmit();
    }
  });
}

function go(change) {
  const { user, channel, thread } = { ...at, ...change };
  location.hash = [user, channel, thread].join("/");
}

function follow() {
  const [user, channel, thread] = location.hash.slice(1).split("/");
  const before = at.user;
  at = { user: user || at.user, channel: channel || at.channel, thread: thread || "" };
  if (stream === null || before !== at.user) {
    stream?.close();
    stream = new EventSource("/page/events?user=" + encodeURIComponent(at.user));
    stream.onmessage = (event) => { view = JSON.parse(event.data); draw(); };
    stream.onerror = () => { $("connection").textContent = "The local Slack does not answer."; };
  } else if (view) draw();
}

form("composer", "text", say);
form("reply", "answer", (text) => act({ do: "say", text, thread_ts: at.thread }));
$("close").addEventListener("click", () => go({ thread: "" }));
$("person").addEventListener("change", () => go({ user: $("person").value, thread: "" }));
addEventListener("hashchange", follow);
follow();
