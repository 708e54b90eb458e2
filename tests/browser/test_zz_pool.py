from tests.browser.conftest import *
KEPT={}
def test_a(server, browse):
    p=browse(scheme="dark",width=390,height=844); q=browse()
    open_at(p,server.url+"/next_token"); 
    expect(p.locator(".st-key-_owner [data-agreed=true]")).to_have_count(1)
    KEPT["a"]=p.evaluate("localStorage.getItem('loupe-owner')"); KEPT["c"]=p.context
    assert p.evaluate("[innerWidth,matchMedia('(prefers-color-scheme: dark)').matches]")==[390,True]
    assert axe_in_both_themes(q.goto(server.url+"/next_token") and (open_at(q,server.url+"/next_token") or q))==[]
def test_b(server, browse):
    a=browse(); b=browse()
    for p in (a,b):
        p.goto(server.url+"/_stcore/health")
        assert p.evaluate("localStorage.length")==0
        open_at(p,server.url)
        assert p.evaluate("localStorage.getItem('loupe-owner')")!=KEPT["a"]
    assert KEPT["c"] in (a.context,b.context)
def test_bad_found(server, browse):
    p=browse(); open_at(p,server.url+"/tokens")
    p.evaluate("""() => { const d=document.createElement('button'); document.querySelector('[data-testid=stMain]').append(d);
      const e=document.createElement('p'); e.textContent='words that are too pale'; e.style.cssText='color:#222;background:#111'; document.querySelector('[data-testid=stMain]').append(e);
      const f=document.createElement('p'); f.textContent='pale in dark'; f.style.cssText='color:light-dark(#000,#222);background:light-dark(#fff,#111)'; document.querySelector('[data-testid=stMain]').append(f)}""")
    found=axe_in_both_themes(p); print("\n".join(found))
    assert any('button-name' in f for f in found) and sum('color-contrast' in f for f in found)==3
